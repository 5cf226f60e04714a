/* SPDX-License-Identifier: GPL-3.0-or-later
   Filters the page in place; without it the page is the full list. */
"use strict";
(() => {
  const form = document.getElementById("filters");
  const status = document.getElementById("status");
  const cards = [...document.querySelectorAll("article.card")];
  const others = [...document.querySelectorAll("#findings > article, #pending li[data-cards]")];
  const buttons = [...document.querySelectorAll("button[data-state], button[data-kernel]")];
  const total = Number(status.dataset.total);
  const names = ["host", "rule", "gpu", "driver", "kernel", "state"];
  const titles = { host: "host", rule: "finding", gpu: "GPU", driver: "driver", kernel: "kernel", state: "state" };

  const chosen = () => Object.fromEntries(names.map((name) => [name, form.elements[name].value.trim()]));

  const hostsOf = (card, part) => {
    const all = card.dataset.hosts.split("\n");
    return part ? all.filter((host) => host.toLowerCase().includes(part.toLowerCase())) : all;
  };

  const fits = (card, filter) =>
    names.every((name) => name === "host" || !filter[name] || card.dataset[name].split("\n").includes(filter[name]));

  const remember = (filter) => {
    const set = names.filter((name) => filter[name]).map((name) => [name, filter[name]]);
    const hash = set.length ? "#" + new URLSearchParams(set) : location.pathname + location.search;
    try {
      history.replaceState(null, "", hash);
    } catch (error) {
      /* a page that may not keep its state still filters */
    }
  };

  const show = () => {
    const filter = chosen();
    const any = names.some((name) => filter[name]);
    const visible = new Set();
    let count = 0;
    for (const card of cards) {
      const hosts = hostsOf(card, filter.host);
      const on = hosts.length > 0 && fits(card, filter);
      card.hidden = !on;
      if (on) {
        visible.add(card.id.replace("card-", ""));
        count += hosts.length;
      }
      const line = card.querySelector(".count");
      line.dataset.full = line.dataset.full || line.textContent;
      line.textContent = on && filter.host ? `${line.dataset.full}, these fit: ${hosts.join(", ")}` : line.dataset.full;
    }
    for (const other of others) {
      const here = other.dataset.cards.split(" ").some((number) => visible.has(number));
      other.hidden = !here || Boolean(filter.rule && other.dataset.rule && other.dataset.rule !== filter.rule);
    }
    for (const group of document.querySelectorAll(".leave")) {
      group.hidden = ![...group.querySelectorAll("li[data-cards]")].some((item) => !item.hidden);
    }
    for (const button of buttons) {
      const pressed = Object.entries(button.dataset).every(([name, value]) => filter[name] === value);
      button.setAttribute("aria-pressed", String(pressed));
    }
    const said = names.filter((name) => filter[name]).map((name) => `${titles[name]} ${filter[name]}`);
    status.textContent = any
      ? `Showing ${count} of ${total} hosts: ${said.join(", ")}.`
      : `All ${total} host${total === 1 ? "" : "s"}.`;
    remember(filter);
  };

  const set = (values) => {
    for (const [name, value] of Object.entries(values)) {
      if (names.includes(name)) {
        form.elements[name].value = value;
      }
    }
  };

  for (const button of buttons) {
    button.disabled = false;
    button.addEventListener("click", () => {
      const off = button.getAttribute("aria-pressed") === "true";
      set(Object.fromEntries(Object.entries(button.dataset).map(([name, value]) => [name, off ? "" : value])));
      show();
    });
  }
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(show));
  form.hidden = false;
  set(Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
  show();
})();
