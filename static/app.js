"use strict";
// Makes the pages live. Every action works without this file.
(() => {
  const PAUSES = [2, 5, 15]; // seconds between polls: while all is well, after one error, after more
  const DOUBT = "it may not have been done. Look at the state below, then try again.";
  let asked = 0, heard = Date.now(), errors = 0, paused = false, skew = 0, spoken = "", out = false, unsent, pressed;
  const all = (selector) => document.querySelectorAll(selector);
  const one = (selector) => document.querySelector(selector);
  const polls = (event) => event.detail.ctx?.sourceElement.matches("[data-live]");
  const refresh = () => {
    asked = 0;
    all("[data-live]").forEach((region) => htmx.trigger(region, "refresh"));
  };

  const alarm = (text, href) => {
    const box = one("#alert");
    box.textContent = text;
    if (href) box.append(" ", Object.assign(document.createElement("a"), { href, textContent: "Log in again" }));
  };
  const answered = () => {
    unsent?.removeAttribute("data-unsent");
    unsent = alarm("");
  };
  const login = () => "/login?next=" + encodeURIComponent(location.pathname + location.search);
  // Refusals come as one plain sentence; a proxy in between may answer with a page of its own.
  const reason = (ctx) => /^text\/plain/.test(ctx.response.headers.get("content-type")) && ctx.text;

  const span = (seconds) => {
    const s = Math.max(0, Math.round(seconds)), two = (n) => String(n).padStart(2, "0");
    if (s < 3600) return `${Math.floor(s / 60)}:${two(s % 60)}`;
    if (s < 86400) return `${Math.floor(s / 3600)}h ${two(Math.floor((s % 3600) / 60))}m`;
    return `${Math.floor(s / 86400)}d ${Math.floor((s % 86400) / 3600)}h`;
  };
  const put = (node, text) => node.textContent === text || (node.textContent = text);
  const tick = () => {
    const now = (Date.now() + skew) / 1000;
    all("time[data-countdown]").forEach((node) => {
      const left = Date.parse(node.dateTime) / 1000 - now;
      put(node, left > 0 ? "in " + span(left) : "now");
    });
    all("time[data-age]").forEach((node) => put(node, span(now - Date.parse(node.dateTime) / 1000)));
    const label = one("#freshness"), quiet = Math.round((Date.now() - heard) / 1000);
    if (!label) return;
    label.dataset.state = quiet >= 30 ? "dead" : quiet >= 10 || paused ? "old" : "fresh";
    put(label, (quiet >= 30 ? "not live: " : paused ? "updates paused: " : "") + `updated ${quiet} s ago`);
  };
  const settle = () => {
    const region = one("[data-live]");
    if (region) skew = Date.parse(region.dataset.now) - Date.now();
    if (unsent && !unsent.isConnected) answered(); // others did it meanwhile
    if (region && region.dataset.say !== spoken) {
      if (spoken) one("#spoken").textContent = region.dataset.say;
      spoken = region.dataset.say;
    }
    tick();
  };

  document.addEventListener("htmx:config:request", (event) => {
    if (!polls(event)) return void (pressed = document.activeElement);
    const rest = PAUSES[Math.min(errors, 2)] * 1000 - 200;
    if (document.hidden || (paused && asked) || Date.now() - asked < rest) event.preventDefault();
    else asked = Date.now();
  });
  document.addEventListener("htmx:after:request", (event) => {
    const { ctx } = event.detail, status = ctx.response.status, poll = polls(event);
    if (status < 400) {
      if (!poll) answered(), ctx.sourceElement.reset?.();
      else if (out) alarm("");
      out = false;
      errors = 0;
      heard = Date.now();
    } else if (poll && status === 401) {
      errors++;
      out = true;
      delete ctx.hx.redirect; // somebody may be reading this in the middle of an incident
      alarm("You are signed out: this page no longer changes.", login());
    } else if (poll) errors++;
    else alarm(reason(ctx) || `The server answered ${status}: ` + (status < 500 ? "nothing was done." : DOUBT));
  });
  document.addEventListener("htmx:error", (event) => {
    if (polls(event)) errors++;
    else if (event.detail.ctx) {
      answered();
      unsent = event.detail.ctx.sourceElement;
      unsent.dataset.unsent = "";
      alarm(navigator.onLine ? "No answer came: " + DOUBT : "Not sent: this device is offline. Press it again when it is back.");
    }
  });
  // A button that was pressed has been disabled, and so has lost the focus; or what was done took it away.
  const refocus = (event) => event.detail.ctx.request.method === "POST" && setTimeout(() => {
    if (document.activeElement === document.body) (pressed?.isConnected ? pressed : one("#said"))?.focus();
  });
  document.addEventListener("htmx:finally:request", refocus);
  document.addEventListener("htmx:after:swap", (event) => (settle(), refocus(event)));
  document.addEventListener("visibilitychange", () => document.hidden || (tick(), refresh()));
  addEventListener("pageshow", (event) => event.persisted && refresh());
  addEventListener("online", refresh);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-pause]");
    if (!button) return;
    paused = !paused;
    button.setAttribute("aria-pressed", paused);
    put(button, paused ? "Resume updates" : "Pause updates");
    if (!paused) refresh();
    tick();
  });
  document.documentElement.classList.add("js");
  document.addEventListener("DOMContentLoaded", settle);
  setInterval(tick, 1000);
  navigator.serviceWorker?.register("/sw.js").catch(() => {}); // the pages need it for nothing
})();
