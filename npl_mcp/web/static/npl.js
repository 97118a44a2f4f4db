// Improvements of pages that work without a script.

// The key / moves the focus to the search box, except in text fields.
document.addEventListener("keydown", (event) => {
  const writes = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || writes || event.ctrlKey || event.metaKey || event.altKey) return;
  const box = document.querySelector('input[type="search"]');
  if (box) {
    event.preventDefault();
    box.focus();
    box.select();
  }
});

// Arrow keys walk a tree of <details>: up and down between visible rows, right opens, left closes or goes up.
document.addEventListener("keydown", (event) => {
  const tree = event.target.closest?.("[data-tree]");
  if (!tree || !["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) return;
  if (event.target.matches("input, textarea, select")) return;
  const all = [...tree.querySelectorAll("summary, [data-leaf]")];
  const steps = all.filter((one) => one.checkVisibility());
  const own = event.target.closest("summary, [data-leaf]");
  const fold = own?.matches("summary") ? own.parentElement : null;
  let next = null;
  if (event.key === "ArrowDown") next = steps[steps.indexOf(own) + 1];
  if (event.key === "ArrowUp") next = steps[steps.indexOf(own) - 1];
  if (event.key === "Home") next = steps[0];
  if (event.key === "End") next = steps.at(-1);
  if (event.key === "ArrowRight") {
    if (fold && !fold.open) fold.open = true;
    else next = steps[steps.indexOf(own) + 1];
  }
  if (event.key === "ArrowLeft") {
    if (fold?.open) fold.open = false;
    else next = (fold ?? own)?.parentElement?.closest("details")?.querySelector("summary");
  }
  event.preventDefault();
  next?.focus();
});

// Copy buttons.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => { button.textContent = label; }, 1500);
});
document.documentElement.classList.add("scripted");

// Renewal of parts: the server renders the whole page, and the new parts replace the old ones. A focused field
// and an opened part are not replaced, unless their own change caused the renewal.
const turns = {};
async function renew(address, ids, own = false) {
  const number = turns[ids] = (turns[ids] ?? 0) + 1;
  const answer = await fetch(address, { headers: { Accept: "text/html" } }).catch(() => null);
  if (number !== turns[ids]) return null;
  const made = answer?.ok && new DOMParser().parseFromString(await answer.text(), "text/html");
  if (number !== turns[ids]) return null;
  if (!made || (own && !ids.every((id) => made.getElementById(id)))) return false;
  for (const id of ids) {
    const old = document.getElementById(id);
    const next = made.getElementById(id);
    if (!old || !next || old.isEqualNode(next)) continue;
    if (!own && (old.contains(document.activeElement?.closest("input, textarea, select")) || old.querySelector("details[open]"))) continue;
    const focused = old.contains(document.activeElement) && document.activeElement.id;
    if (old === feed) merge(next);
    else old.replaceWith(next);
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  }
  return true;
}

// Rows of a feed that are the same stay, with the focus; the age of a row does not count.
function merge(next) {
  const key = (row) => row.outerHTML.replace(/<time.*?<\/time>/gs, "");
  const wanted = new Set([...next.children].map(key));
  for (const row of [...feed.children]) if (!wanted.has(key(row))) row.remove();
  [...next.children].forEach((row, at) => {
    const here = feed.children[at];
    if (!here || key(here) !== key(row)) feed.insertBefore(row, here ?? null);
  });
}

// Slow parts load after the page.
for (const part of document.querySelectorAll("[data-later]")) renew(part.dataset.later, [part.id]);

// Filters apply during typing.
let typing = 0;
document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-renews]");
  if (!form) return;
  clearTimeout(typing);
  typing = setTimeout(async () => {
    typing = 0;
    const address = `${location.pathname}?${new URLSearchParams(new FormData(form))}`;
    if (await renew(address, form.dataset.renews.split(" "))) history.replaceState(history.state, "", address);
  }, 120);
});

// Marked parts are polled until the server sends them without the mark.
for (const part of document.querySelectorAll("[data-poll]")) {
  const look = async () => {
    await renew(location.href, [part.id]);
    if (document.getElementById(part.id)?.matches("[data-poll]")) setTimeout(look, 1000);
  };
  setTimeout(look, 500);
}

// Marked parts are renewed every few seconds, and soon after a form was sent. A page scrolled to its end follows its
// feed; any other page shows the number of new rows.
const feed = document.getElementById("feed");
const end = document.getElementById("end");
const told = document.querySelector("[data-news]");
const tell = (count) => {
  if (!told) return;
  told.dataset.news = count;
  told.hidden = !count;
  told.textContent = `${count} new ↓`;
};
let freshening = 0;
const fresh = (wait) => {
  clearTimeout(freshening);
  freshening = setTimeout(async () => {
    const parts = [...document.querySelectorAll("[data-fresh]")].map((part) => part.id);
    const before = new Set([...feed?.children ?? []].map((row) => row.id));
    const follows = end && end.getBoundingClientRect().top < innerHeight + 8;
    if (parts.length && !document.hidden && !typing && await renew(location.href, parts) && feed?.dataset.fresh) {
      const count = [...feed.children].filter((row) => row.id && !before.has(row.id)).length;
      if (count && follows) end.scrollIntoView({ block: "end" });
      else if (count) tell(Number(told?.dataset.news || 0) + count);
    }
    fresh(Number(feed?.dataset.fresh) || 4000);
  }, wait);
};
document.addEventListener("visibilitychange", () => fresh(0));
if (end && told) new IntersectionObserver(([seen]) => { if (seen.isIntersecting) tell(0); }).observe(end);
if (feed?.dataset.fresh && !location.hash) end.scrollIntoView({ block: "end" });
fresh(Number(feed?.dataset.fresh) || 4000);

// Drafts are stored until they are sent, and survive reloads and sign-in.
const drafts = "textarea[data-draft]";
const kept = (box) => `draft ${box.dataset.draft}`;
const sent = sessionStorage.getItem("sent");
if (document.querySelector("main > [role=alert]")) sessionStorage.removeItem("sent");
for (const box of document.querySelectorAll(drafts)) {
  if (sent === kept(box)) {
    sessionStorage.removeItem(sent);
    sessionStorage.removeItem("sent");
  }
  box.value ||= sessionStorage.getItem(kept(box)) ?? "";
}
document.addEventListener("input", (event) => {
  if (event.target.matches(drafts)) sessionStorage.setItem(kept(event.target), event.target.value);
});

// Marked forms are sent without leaving the page; after an error, the form is sent again without the script.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  const box = form.querySelector(drafts);
  if (!form.matches("[data-stays]:not([data-plain])")) {
    if (box && form.method === "post") sessionStorage.setItem("sent", kept(box));
    return;
  }
  event.preventDefault();
  const button = event.submitter;
  const body = new URLSearchParams(new FormData(form, button));
  const headers = { Accept: "text/html" };
  const answer = await fetch(button?.getAttribute("formaction") ?? form.action, { method: "POST", body, headers }).catch(() => null);
  if (!answer?.ok) {
    form.dataset.plain = "";
    form.requestSubmit(button);
    return;
  }
  // The next message of this form gets its own id.
  form.elements.form_id.value = crypto.getRandomValues(new Uint32Array(4)).join("-");
  if (box) {
    sessionStorage.removeItem(kept(box));
    form.reset();
    quote(form, "", "");
    tell(0);
    end?.scrollIntoView({ block: "end" });
  }
  fresh(0);
});

// The browser asks before it leaves an unsaved text, unless the form of that text is sent.
let left = null;
addEventListener("beforeunload", (event) => {
  const boxes = [...document.querySelectorAll("[data-guard] textarea:not([hidden])")];
  if (boxes.some((box) => box.form !== left && box.value !== box.defaultValue)) event.preventDefault();
});
document.addEventListener("submit", (event) => { left = event.target; });

// The comment form moves to the chosen line and keeps its text.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-line]");
  const form = document.getElementById("write");
  if (!link || !form) return;
  event.preventDefault();
  const row = link.closest("tr");
  const old = form.closest("tr, .margin, [hidden]");
  if (row) {
    const cell = row.parentElement.insertRow(row.sectionRowIndex + 1).insertCell();
    cell.colSpan = row.cells.length;
    cell.append(form);
  } else {
    let margin = link.parentElement.querySelector(".margin");
    if (!margin) {
      margin = Object.assign(document.createElement("div"), { className: "margin" });
      link.after(margin);
    }
    margin.append(form);
  }
  if (old?.matches("tr, [hidden], .margin:empty")) old.remove();
  form.elements.location.value = `line:${link.dataset.line}`;
  form.elements.comment.focus();
});

// Replaced lines of a comparison have marks at their changed words: all between a common beginning and end.
const markWords = (code, other) => {
  const [words, others] = [code, other].map((line) => line.textContent.split(/(?<=\s)|(?=\s)/));
  const most = Math.min(words.length, others.length);
  let start = 0, end = 0;
  while (start < most && words[start] === others[start]) start += 1;
  while (end < most - start && words.at(-1 - end) === others.at(-1 - end)) end += 1;
  if (!start && !end) return;
  const mark = document.createElement("mark");
  mark.textContent = words.slice(start, words.length - end).join("");
  code.replaceChildren(words.slice(0, start).join(""), mark, words.slice(words.length - end).join(""));
};
const markPairs = (removed, added) => {
  for (const [at, line] of removed.entries()) {
    if (!added[at]) return;
    const old = line.cloneNode(true);
    markWords(line, added[at]);
    markWords(added[at], old);
  }
};
for (const table of document.querySelectorAll(".diff")) {
  let removed = [], added = [];
  for (const row of table.rows) {
    const cell = row.querySelector(".removed, .added");
    if (!cell || (cell.matches(".removed") && added.length)) {
      markPairs(removed, added);
      [removed, added] = [[], []];
    }
    if (cell) (cell.matches(".removed") ? removed : added).push(cell.querySelector("code"));
  }
  markPairs(removed, added);
}

// A reply uses the message box of the page.
const quote = (form, id, words) => {
  if (!form.elements.reply_to_id) return;
  form.elements.reply_to_id.value = id;
  form.querySelector(".to").hidden = !id;
  form.querySelector(".to .quote").textContent = words;
};
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-reply]");
  const form = document.getElementById("write");
  if (!link || !form) return;
  event.preventDefault();
  quote(form, link.dataset.reply, link.dataset.quote ?? "");
  form.elements.message.focus();
});

// The states of marked boxes are kept in the address, and in links to other states of the page.
document.addEventListener("change", ({ target: box }) => {
  if (!box.matches("[data-keep]")) return;
  const kept = (address) => {
    const url = new URL(address);
    const others = url.searchParams.getAll(box.name).filter((value) => value !== box.value);
    url.searchParams.delete(box.name);
    for (const value of box.checked ? [...others, box.value] : others) url.searchParams.append(box.name, value);
    return url.href;
  };
  history.replaceState(history.state, "", kept(location.href));
  for (const link of document.links) if (link.search && link.pathname === location.pathname) link.href = kept(link.href);
});

// Sliders show their value or set a field; marked forms and fields send the form on a change.
document.addEventListener("input", ({ target }) => {
  if (target.type !== "range") return;
  target.value = Math.max(target.value, target.step); // 0 would be no limit
  const shown = target.form?.querySelector(`output[for="${target.id}"]`);
  if (shown) shown.textContent = target.value;
  if (target.dataset.sets) document.getElementById(target.dataset.sets).value = target.value;
});
document.addEventListener("change", ({ target }) => {
  const field = target.dataset.sets ? document.getElementById(target.dataset.sets) : target;
  // A click on the form's button changes the field that loses the focus, and sends the form itself.
  if (field.form?.querySelector("button:active")) return;
  if (field.matches("[data-auto]") || field.form?.matches("[data-auto]")) field.form.requestSubmit();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.target.closest?.("textarea")?.form?.requestSubmit();
});

// A marked link, or a form whose named fields are unchanged, renews parts without leaving the page. Focus and scroll
// position stay, and the address is replaced.
async function swap(address) {
  const parts = [...document.querySelectorAll("[data-swapped]")];
  for (const part of parts) part.setAttribute("aria-busy", "true");
  const done = await renew(address, parts.map((part) => part.id), true);
  if (done) history.replaceState(history.state, "", address);
  else if (done === false) location.assign(address);
}
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-swap]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || !document.querySelector("[data-swapped]")) return;
  event.preventDefault();
  swap(link.href);
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("[data-swap]") || !document.querySelector("[data-swapped]")) return;
  const given = new FormData(form, event.submitter), before = new URLSearchParams(location.search);
  if (form.dataset.swap.split(" ").some((name) => (given.get(name) ?? "").trim() !== (before.get(name) ?? "").trim())) return;
  event.preventDefault();
  for (const [name, value] of given) before.set(name, value);
  for (const [name, value] of [...before]) if (value === "") before.delete(name);
  swap(`${form.getAttribute("action")}?${before}`);
});
