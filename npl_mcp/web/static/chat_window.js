"use strict";
// The page Ask in a chat window: answers contain its HTML; its links and its form become tool calls.

const said = document.getElementById("said");
const main = document.getElementById("main");
document.documentElement.classList.add("scripted");
let tool = "npl_ask";
let asked = 0;

// JSON-RPC with the host, in window messages.

const pending = new Map();
let last = 0;

function send(message) {
  window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
}

function request(method, params) {
  const id = ++last;
  send({ id, method, params });
  return new Promise((resolve, reject) => pending.set(id, { resolve, reject }));
}

const answers = { ping: () => ({}), "ui/resource-teardown": () => ({}) };

const news = {
  "ui/notifications/tool-result": (params) => show(params),
  "ui/notifications/tool-cancelled": (params) => { said.textContent = `The call was cancelled: ${params.reason ?? "no reason was given"}.`; },
  "ui/notifications/host-context-changed": (params) => dress(params),
};

window.addEventListener("message", (event) => {
  const message = event.data;
  if (event.source !== window.parent || message?.jsonrpc !== "2.0") return;
  if (message.method === undefined) {
    const waiting = pending.get(message.id);
    pending.delete(message.id);
    if (message.error) waiting?.reject(new Error(message.error.message));
    else waiting?.resolve(message.result);
  } else if (message.id !== undefined) {
    const answer = answers[message.method];
    if (answer) send({ id: message.id, result: answer() });
    else send({ id: message.id, error: { code: -32601, message: `no method ${message.method}` } });
  } else {
    news[message.method]?.(message.params ?? {});
  }
});

function dress(context) {
  if (context.theme) document.documentElement.style.colorScheme = context.theme;
  for (const [name, value] of Object.entries(context.styles?.variables ?? {})) {
    if (value) document.documentElement.style.setProperty(name, value);
  }
  tool = context.toolInfo?.tool?.name ?? tool;
}

// Answers.

function show(answer) {
  const html = answer.structuredContent?.html;
  if (answer.isError || html === undefined) {
    said.textContent = answer.content?.map((block) => block.text ?? "").join("\n") || "The call failed.";
    try { said.textContent = JSON.parse(said.textContent).error; } catch { /* it is text */ }
    return;
  }
  said.textContent = "";
  const focused = document.activeElement?.id;
  main.innerHTML = html;
  document.getElementById(focused)?.focus({ preventScroll: true });
  // The window has this page alone.
  for (const link of main.querySelectorAll("a")) if (!query(link)) link.removeAttribute("href");
}

function query(link) {
  const [path, parameters] = (link.getAttribute("href") ?? "").split("#")[0].split("?");
  return path === "/ask" ? new URLSearchParams(parameters) : undefined;
}

// Calls: the parameters of a page address are the arguments.

async function ask(parameters, place) {
  const text = (name) => parameters.get(name)?.trim() || undefined;
  const parts = (name, between) => text(name)?.split(between).map((one) => one.trim()).filter(Boolean);
  const given = {
    context: text("context"),
    topics: parts("topics", ","),
    selectors: parts("selectors", "\n"),
    file: text("file"),
    token_budget: parameters.has("budget") ? Number(text("budget")) : undefined,
    format: text("form"),
    section: text("section"),
    view: text("view"),
  };
  const number = ++asked;
  said.textContent = "Asking …";
  try {
    const answer = await request("tools/call", { name: tool, arguments: JSON.parse(JSON.stringify(given)) });
    if (number !== asked) return;
    show(answer);
    if (place) document.getElementById(place)?.scrollIntoView();
  } catch (error) {
    if (number === asked) said.textContent = `The host did not pass the call on: ${error.message}`;
  }
}

const submit = (form) => ask(new URLSearchParams(new FormData(form)));

// Sandboxes of hosts need not allow forms to be submitted.
main.addEventListener("submit", (event) => event.preventDefault());
main.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  const parameters = link && query(link);
  if (parameters) {
    event.preventDefault();
    ask(parameters, link.hash.slice(1));
  } else if (event.target.closest("form button")) {
    event.preventDefault();
    submit(event.target.form);
  }
});
main.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches("input")) submit(event.target.form);
});
main.addEventListener("input", ({ target }) => {
  if (target.dataset.sets) document.getElementById(target.dataset.sets).value = target.value;
});
main.addEventListener("change", ({ target }) => {
  const field = target.dataset.sets ? document.getElementById(target.dataset.sets) : target;
  if ("auto" in field.dataset) submit(field.form);
});

// The handshake; then the host learns the size of the page.

request("ui/initialize", {
  protocolVersion: "2026-01-26",
  appInfo: { name: "npl-ask", title: "Ask", version: "1" },
  appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
}).then((host) => {
  dress(host.hostContext ?? {});
  send({ method: "ui/notifications/initialized" });
  let height = 0;
  new ResizeObserver(() => {
    const now = Math.ceil(document.body.getBoundingClientRect().height);
    if (now !== height) send({ method: "ui/notifications/size-changed", params: { height: height = now } });
  }).observe(document.body);
}, (error) => { said.textContent = `The host did not answer: ${error.message}`; });
