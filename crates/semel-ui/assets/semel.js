// What a page can do besides, where there is JavaScript: copy, choose all of a list, ask before what is hard, show
// deliveries as they come. Nothing here is needed to read or to act.
(() => {
  "use strict";

  // Buttons that copy appear only where copying works.
  const reveal = (root) => {
    if (!navigator.clipboard) return;
    for (const button of root.querySelectorAll("button[data-copy][hidden]")) button.hidden = false;
  };

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    const said = button.textContent;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
    setTimeout(() => { button.textContent = said; }, 1500);
  });

  // A box with data-all="NAME" ticks all boxes of that name in its form. It is shown where that works.
  const offer = () => {
    for (const all of document.querySelectorAll("input[data-all]")) all.closest("[hidden]").hidden = false;
  };
  document.addEventListener("change", (event) => {
    const all = event.target.closest("input[data-all]");
    if (!all || !all.form) return;
    for (const box of all.form.querySelectorAll("input[type=checkbox]")) {
      if (box.name === all.dataset.all) box.checked = all.checked;
    }
  });

  // A form is sent once, however often its button is pressed.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "yes";
  });
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });

  // <tbody data-stream="PATH" data-rows="50">: rows that the server renders and sends as events, the newest first.
  const stream = (body) => {
    const rows = Number(body.dataset.rows) || 50;
    const source = new EventSource(body.dataset.stream);
    source.addEventListener("row", (event) => {
      const row = new DOMParser().parseFromString(`<table>${event.data}</table>`, "text/html").querySelector("tr");
      if (!row) return;
      body.prepend(document.importNode(row, true));
      while (body.rows.length > rows) body.deleteRow(-1);
    });
    addEventListener("pagehide", () => source.close());
  };

  // What is live is fetched anew unless its reader has stopped that, or looks elsewhere.
  const isPaused = (piece) => piece.querySelector("button[data-pause]")?.getAttribute("aria-pressed") === "true";
  const pauses = () => {
    document.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-pause]");
      if (!button) return;
      const paused = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(paused));
      button.previousSibling.textContent = paused ? "Paused " : button.dataset.says;
    });
    document.body.addEventListener("htmx:beforeRequest", (event) => {
      if (event.target.matches(".live") && (isPaused(event.target) || document.hidden)) event.preventDefault();
    });
    // Nothing is taken away from under the reader's hands.
    document.body.addEventListener("htmx:oobBeforeSwap", (event) => {
      const part = event.detail.target;
      const selection = getSelection();
      const selects = !selection.isCollapsed && selection.containsNode(part, true);
      if (selects || part.contains(document.activeElement)) event.detail.shouldSwap = false;
    });
    for (const button of document.querySelectorAll("button[data-pause]")) {
      button.dataset.says = button.previousSibling.textContent;
      button.parentElement.hidden = false;
    }
  };

  // "/" goes to the box that finds things.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    const find = document.querySelector("form.find input");
    if (find) { event.preventDefault(); find.focus(); }
  });

  document.addEventListener("DOMContentLoaded", () => {
    reveal(document);
    for (const body of document.querySelectorAll("tbody[data-stream]")) stream(body);
    offer();
    pauses();
    document.body.addEventListener("htmx:oobAfterSwap", (event) => reveal(event.target));
  });
})();
