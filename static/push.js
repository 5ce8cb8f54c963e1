"use strict";
// Switches Web Push on in this browser. Loaded by the one page that offers it.
(() => {
  const form = document.querySelector("#push-form"), button = document.querySelector("#push-on");
  const say = (text) => { document.querySelector("#push-said").textContent = text; };
  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
  const same = (a, b) => a && a.byteLength === b.length && new Uint8Array(a).every((byte, at) => byte === b[at]);

  const subscribe = async (worker, key) => {
    const before = await worker.pushManager.getSubscription();
    if (before && same(before.options.applicationServerKey, key)) return before;
    if (before) await before.unsubscribe(); // it was made for keys that are no longer ours
    return worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  };

  if (!("serviceWorker" in navigator) || !("PushManager" in window) || !("Notification" in window)) {
    say("This browser has no Web Push. Over plain HTTP no browser has it, except on this machine.");
    return;
  }
  button.disabled = false;
  form.addEventListener("submit", async (event) => {
    if (form.elements.subscription.value) return;
    event.preventDefault();
    button.disabled = true;
    try {
      // Asked first: a browser lets a page ask only in answer to a tap.
      const answer = await Notification.requestPermission();
      if (answer !== "granted") throw new Error("Notifications are not allowed here. Allow them in the browser's settings for this site.");
      await navigator.serviceWorker.register(form.dataset.worker);
      const subscription = await subscribe(await navigator.serviceWorker.ready, bytes(form.dataset.key));
      form.elements.subscription.value = JSON.stringify(subscription);
      form.submit();
    } catch (fault) {
      say(`Push could not be switched on: ${fault.message}`);
      button.disabled = false;
    }
  });
})();
