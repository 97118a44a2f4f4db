// What pages do beyond what they show: every page reads without it.

// A slash leads to the search box, unless somebody writes.
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

// Arrows walk a tree of <details>: up and down between what can be seen, right opens, left closes or goes up.
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

// Texts to copy.
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

// Parts of the page as they are now: the server makes the whole page, and these of it take the place of the old ones.
// A field that is in use is not replaced, unless its own change brings the new parts.
let turn = 0;
async function renew(address, ids, own = false) {
  const number = ++turn;
  const answer = await fetch(address, { headers: { Accept: "text/html" } }).catch(() => null);
  if (number !== turn) return null;
  const made = answer?.ok && new DOMParser().parseFromString(await answer.text(), "text/html");
  if (number !== turn) return null;
  if (!made || (own && !ids.every((id) => made.getElementById(id)))) return false;
  for (const id of ids) {
    const old = document.getElementById(id);
    const next = made.getElementById(id);
    if (!old || !next || old.isEqualNode(next)) continue;
    if (!own && old.contains(document.activeElement?.closest("input, textarea, select"))) continue;
    const focused = old.contains(document.activeElement) && document.activeElement.id;
    old.replaceWith(next);
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  }
  return true;
}

// Filters take effect while somebody types.
let typing = 0;
document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-renews]");
  if (!form) return;
  clearTimeout(typing);
  typing = setTimeout(async () => {
    const address = `${location.pathname}?${new URLSearchParams(new FormData(form))}`;
    if (await renew(address, form.dataset.renews.split(" "))) history.replaceState(history.state, "", address);
  }, 120);
});

// News: the server sends rows as it makes them for the page. One that the page has takes the place of that; another
// is new, unless it is said to have changed: then it stands on an earlier page.
for (const list of document.querySelectorAll("[data-stream]")) {
  const news = new EventSource(list.dataset.stream);
  const show = (event) => {
    const made = document.createElement("template");
    made.innerHTML = event.data;
    for (const row of [...made.content.children]) {
      const old = row.id && document.getElementById(row.id);
      if (old) old.replaceWith(row);
      else if (event.type === "message") list.append(row);
    }
  };
  news.addEventListener("message", show);
  news.addEventListener("changed", show);
  news.addEventListener("failed", () => news.close());
  addEventListener("pagehide", () => news.close());
}

// Boxes marked so are kept in the address, in the links that lead to the page in another state, and in its form.
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
document.addEventListener("formdata", ({ target, formData }) => {
  if (!target.matches("[data-swap]")) return;
  for (const box of document.querySelectorAll("[data-keep]")) formData.delete(box.name);
  for (const box of document.querySelectorAll("[data-keep]:checked")) formData.append(box.name, box.value);
});

// Sliders say their value or set a field; forms and fields marked so send the form when they change.
document.addEventListener("input", ({ target }) => {
  if (target.type !== "range") return;
  const shown = target.form?.querySelector(`output[for="${target.id}"]`);
  const said = "time" in target.dataset ? new Date(target.value * 1000).toISOString().slice(0, 19).replace("T", " ") : target.value;
  if (shown) shown.textContent = said;
  if (target.dataset.sets) document.getElementById(target.dataset.sets).value = target.value;
});
document.addEventListener("change", ({ target }) => {
  const field = target.dataset.sets ? document.getElementById(target.dataset.sets) : target;
  if (field.matches("[data-auto]") || field.form?.matches("[data-auto]")) field.form.requestSubmit();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.target.closest?.("textarea")?.form?.requestSubmit();
});

// Parts of a page that come again: a link marked so, or a form whose named fields are as they were, brings them without
// leaving the page. Focus and scroll position stay, and the address is replaced.
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
  const filled = [...given].filter(([, value]) => value !== "");
  swap(`${form.getAttribute("action")}?${new URLSearchParams(filled)}`);
});
