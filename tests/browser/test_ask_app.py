"""Ask in a chat window: a small host speaks the protocol of MCP Apps with the page, and passes calls on."""

from __future__ import annotations

import json
import re
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Frame, Page, Route, expect

from tests.browser.conftest import Tab
from tests.browser.site import Site
from tests.npl_mcp.http.http_server import META, mcp

PAGE = "ui://npl/ask"
QUESTION = {"context": "turn the barrels", "file": "cellar", "token_budget": 300}

# What hosts must send with a page that asks for no other domains.
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; media-src 'self' data:; connect-src 'none'"
)

HOST = """\
<!doctype html><html lang="en"><title>Host</title><link rel="icon" href="data:,"><body>
<iframe title="App" sandbox="allow-scripts" src="/host/app" width="100%"></iframe>
<script>
const frame = document.querySelector("iframe");
const heard = window.heard = [];
const say = (message) => frame.contentWindow.postMessage({jsonrpc: "2.0", ...message}, "*");
window.say = say;
addEventListener("message", async ({source, data}) => {
  if (source !== frame.contentWindow) return;
  heard.push(data);
  if (data.method === "ui/initialize") {
    say({id: data.id, result: {
      protocolVersion: data.params.protocolVersion, hostInfo: {name: "host", version: "1"},
      hostCapabilities: {serverTools: {}}, hostContext: {theme: "dark", toolInfo: {tool: {name: "npl_ask"}}},
    }});
  } else if (data.method === "ui/notifications/initialized") {
    say({method: "ui/notifications/tool-input", params: {arguments: QUESTION}});
    const params = await window.passOn("npl_ask", QUESTION);
    say({method: "ui/notifications/tool-result", params});
  } else if (data.method === "ui/notifications/size-changed") {
    frame.height = data.params.height;
  } else if (data.method === "tools/call") {
    say({id: data.id, result: await window.passOn(data.params.name, data.params.arguments)});
  }
});
</script></body></html>
"""


def sent(site: Site, method: str, **params: Any) -> Any:
    """Send a request as a host does that shows pages."""
    shows = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": shows}
    headers = {"Mcp_Name": params["uri"]} if "uri" in params else {}
    answer = mcp(site.server, method, {**params, "_meta": meta}, **headers)
    line = next(one for one in answer.body.decode().splitlines() if '"jsonrpc"' in one)
    return json.loads(line.removeprefix("data: "))["result"]


def hosted(tab: Tab) -> tuple[Page, Frame]:
    """Open the page of the tool in a host, and wait for the first answer."""
    site, page = tab.site, tab.page
    (tool,) = [one for one in sent(site, "tools/list")["tools"] if one["name"] == "npl_ask"]
    (content,) = sent(site, "resources/read", uri=tool["_meta"]["ui"]["resourceUri"])["contents"]

    def answer(route: Route) -> None:
        if route.request.url.endswith("/app"):
            headers = {"Content-Security-Policy": POLICY}
            route.fulfill(body=content["text"], content_type=content["mimeType"], headers=headers)
        else:
            route.fulfill(body=HOST.replace("QUESTION", json.dumps(QUESTION)), content_type="text/html")

    page.route("**/host**", answer)
    page.expose_function("passOn", lambda name, given: sent(site, "tools/call", name=name, arguments=given))
    page.goto(f"{site.url}/host")
    frame = next(one for one in page.frames if one.parent_frame is not None)
    expect(frame.get_by_label("Views of the answer")).to_be_visible()
    return page, frame


def test_the_page_in_a_host(scripted: Tab) -> None:
    """The answer of the model's call shows at once; what a person does calls the tool through the host."""
    page, frame = hosted(scripted)
    expect(frame.locator(".sum")).to_contain_text("of 300 tokens")
    box = frame.locator(".card").first.bounding_box()
    assert box is not None
    assert box["y"] < 400
    expect(frame.locator(".card").first).to_contain_text("Turning barrels")
    assert frame.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
    found = Axe().run(frame)  # type: ignore[arg-type]
    assert found.violations_count == 0, found.generate_report()

    frame.locator("#open-1").click()
    opened = frame.get_by_role("region", name="Turning barrels")
    expect(opened.locator("pre").first).to_contain_text("In week 39")
    expect(frame.locator("#open-1")).to_be_focused()
    opened.get_by_role("link", name="Close").click()
    expect(opened).to_have_count(0)
    frame.get_by_role("link", name="JSON").click()
    expect(frame.locator(".answer")).to_contain_text('{"success":true')
    frame.get_by_label("Views of the answer").get_by_role("link", name="Answer").click()
    first = frame.locator(".card").first
    expect(first.get_by_role("img", name="shortened")).to_be_visible()
    frame.get_by_role("slider").press("ArrowRight")
    expect(frame.locator(".sum")).to_contain_text("of 350 tokens")
    expect(frame.get_by_role("slider")).to_be_focused()
    frame.locator("summary").first.click()
    expect(frame.get_by_label("Context")).to_have_value("turn the barrels")
    frame.get_by_role("spinbutton").fill("0")
    frame.get_by_role("button", name="Ask", exact=True).click()
    expect(first.get_by_role("img", name="taken")).to_be_visible()

    heard = page.evaluate("heard")
    assert heard[0]["params"]["protocolVersion"] == "2026-01-26"
    assert heard[1] == {"jsonrpc": "2.0", "method": "ui/notifications/initialized"}
    calls = [one["params"] for one in heard if one.get("method") == "tools/call"]
    assert {one["name"] for one in calls} == {"npl_ask"}
    budgets = [one["arguments"].get("token_budget") for one in calls]
    assert budgets[:4] == [300] * 4
    assert [budgets[4], budgets[-1]] == [350, 0]
    heights = [
        one["params"]["height"] for one in heard if one.get("method") == "ui/notifications/size-changed"
    ]
    assert len(set(heights)) > 1


def test_what_a_host_may_also_say(scripted: Tab) -> None:
    """Failures are shown, requests are answered, and text of documents stays text."""
    page, frame = hosted(scripted)
    frame.locator(".card").get_by_role("link", name="Bung & barrel").click()
    opened = frame.get_by_role("region", name="Bung & barrel")
    expect(opened.locator("pre").first).to_contain_text("<script>alert(1)</script>")
    expect(opened.get_by_text("cellar/rules.md", exact=True)).not_to_have_attribute("href", re.compile("."))
    frame.locator("summary").first.click()
    frame.get_by_label("Files").fill("nowhere.md")
    frame.get_by_label("Files").press("Enter")
    expect(frame.locator("#said")).to_contain_text("there is no document 'nowhere.md'")
    page.evaluate("say({method: 'ui/notifications/host-context-changed', params: {theme: 'light'}})")
    for number, method in enumerate(["ping", "ui/resource-teardown", "tools/list"], 900):
        page.evaluate("([id, method]) => say({id, method, params: {}})", [number, method])
    page.evaluate("say({method: 'ui/notifications/tool-cancelled', params: {reason: 'enough'}})")
    expect(frame.locator("#said")).to_contain_text("enough")
    answers = {one["id"]: one for one in page.evaluate("heard") if one.get("id", 0) >= 900}
    assert answers[900]["result"] == answers[901]["result"] == {}
    assert answers[902]["error"]["code"] == -32601
    assert frame.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
