"""Search: one box on every page finds every kind of thing."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import Tab


def test_a_word_is_found_everywhere(tab: Tab) -> None:
    page = tab.open("/rooms")
    page.get_by_role("searchbox").fill("capstan")
    with tab.arriving():
        page.get_by_role("searchbox").press("Enter")
    tab.check()
    hits = page.get_by_role("main").get_by_role("listitem")
    for kind in ("document", "message", "worklog", "artifact", "cr"):
        expect(hits.get_by_text(kind, exact=True).first).to_be_visible()
    expect(page.get_by_text("Oil the capstan <i>now</i>.")).to_be_visible()
    tab.follow(page.get_by_label("Kinds").get_by_role("link", name="Messages"))
    tab.check()
    expect(hits).to_have_count(1)
    tab.follow(hits.get_by_role("link"))
    expect(page.get_by_text("Oil the capstan <i>now</i>.").first).to_be_in_viewport()


def test_a_document_opens_at_its_section(tab: Tab) -> None:
    page = tab.open("/search?q=prime+the+siphon&kind=document")
    tab.follow(page.get_by_role("main").get_by_role("link", name="Filling"))
    expect(page.get_by_role("heading", name="Filling")).to_be_visible()
    expect(page.get_by_role("heading", name="Impeller")).to_be_visible()


def test_nothing_is_said_where_nothing_fits(tab: Tab) -> None:
    """The page names absent words and links similar ones."""
    page = tab.open("/search?q=zzzxqv")
    expect(page.get_by_text("Nothing found.")).to_be_visible()
    expect(page.get_by_text("No section has zzzxqv")).to_be_visible()
    expect(page.locator(".hits")).to_have_count(0)
    page = tab.open("/search?q=capstam")
    tab.check()
    tab.follow(page.locator(".said").get_by_role("link", name="capstan", exact=False))
    expect(page.get_by_text("Oil the capstan <i>now</i>.")).to_be_visible()
    tab.open("/search")
    tab.open("/search?q=a&kind=none", status=400)


def test_a_slash_leads_to_the_box(scripted: Tab) -> None:
    page = scripted.open("/rooms")
    page.keyboard.press("/")
    page.keyboard.type("capstan")
    with scripted.arriving():
        page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Search", level=1)).to_be_visible()


def test_a_document_is_one_row(tab: Tab) -> None:
    """The row lists its sections, each with a link; the words are marked in title and text."""
    page = tab.open("/search?q=siphon+lifts+water&kind=document")
    row = page.locator(".hits > li").filter(has=page.get_by_role("link", name="siphons.md"))
    expect(row).to_have_count(1)
    assert row.get_by_role("listitem").count() > 2
    expect(row.locator("mark").first).to_be_visible()
    tab.check()
    tab.follow(row.get_by_role("listitem").nth(1).get_by_role("link"))
    expect(page.get_by_role("heading", name="Siphons").first).to_be_visible()


def titles(page: Page) -> list[str]:
    return page.locator(".hits a").all_inner_texts()


def test_operators_narrow_what_is_found(tab: Tab) -> None:
    """A path, a kind, an excluded word and a phrase narrow the results."""
    everything = titles(tab.open("/search?q=capstan"))
    assert len(everything) > 4
    page = tab.open("/search?q=capstan+path%3Acapstan.md")
    assert titles(page) == ["Capstan"]
    page = tab.open("/search?q=capstan+kind%3Amessage")
    expect(page.locator(".hits .kind")).to_have_text(["message"])
    page = tab.open("/search?q=capstan+-anchor+-oil+-oiled")
    expect(page.get_by_text("lifts the anchor")).to_have_count(0)
    expect(page.get_by_text("Oil the capstan")).to_have_count(0)
    assert 0 < len(titles(page)) < len(everything)
    page = tab.open("/search?q=%22capstan+sticks%22")
    assert page.locator(".hits > li").first.inner_text().count("capstan sticks") == 1
    page = tab.open("/search?q=path%3Acapstan")
    expect(page.get_by_text("Type a question or some words.")).to_be_visible()


def test_results_come_while_a_person_types(scripted: Tab) -> None:
    """The box keeps its focus and its text, and the address leads back to the same results."""
    page = scripted.open("/search?q=capstan")
    box = page.get_by_role("searchbox")
    box.fill("")
    box.press_sequentially("siphon lifts")
    expect(page.get_by_role("link", name="siphons.md")).to_be_visible()
    expect(box).to_be_focused()
    expect(box).to_have_value("siphon lifts")
    page.wait_for_url("**q=siphon+lifts")
    scripted.check()
    page.reload()
    expect(page.get_by_role("link", name="siphons.md")).to_be_visible()


def test_arrows_walk_the_results(scripted: Tab) -> None:
    page = scripted.open("/search?q=capstan")
    page.locator(".hits a").first.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".hits a").nth(1)).to_be_focused()
