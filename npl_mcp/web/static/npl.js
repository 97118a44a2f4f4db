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
let turn = 0;
async function renew(address, ids) {
  const own = ++turn;
  const answer = await fetch(address, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!answer?.ok || own !== turn) return false;
  const made = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const id of ids) {
    const old = document.getElementById(id);
    const next = made.getElementById(id);
    if (!old || !next || old.isEqualNode(next) || old.contains(document.activeElement?.closest("input, textarea, select"))) continue;
    const focused = old.contains(document.activeElement) && document.activeElement.id;
    old.replaceWith(next);
    if (focused) document.getElementById(focused)?.focus();
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

// Boxes marked so are kept in the address, and in the links that lead to the page in another state.
for (const box of document.querySelectorAll("[data-keep]")) {
  const kept = (address) => {
    const url = new URL(address);
    const others = url.searchParams.getAll(box.name).filter((value) => value !== box.value);
    url.searchParams.delete(box.name);
    for (const value of box.checked ? [...others, box.value] : others) url.searchParams.append(box.name, value);
    return url.href;
  };
  box.addEventListener("change", () => {
    history.replaceState(history.state, "", kept(location.href));
    for (const link of document.links) if (link.search && link.pathname === location.pathname) link.href = kept(link.href);
  });
}

// Sliders say their value, and forms and fields marked so send the form when they change.
for (const slider of document.querySelectorAll('input[type="range"]')) {
  const shown = slider.form?.querySelector(`output[for="${slider.id}"]`);
  const said = "time" in slider.dataset
    ? () => new Date(slider.value * 1000).toISOString().slice(0, 19).replace("T", " ")
    : () => slider.value;
  slider.addEventListener("input", () => { if (shown) shown.textContent = said(); });
}
for (const one of document.querySelectorAll("[data-auto]")) {
  one.addEventListener("change", () => (one.form ?? one).requestSubmit());
}
