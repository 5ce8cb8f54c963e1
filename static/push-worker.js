"use strict";
// What the service worker does with a push: it shows the notification, and its button acknowledges.
const OPEN = "Open Escalade: something has happened.";

const told = (event) => {
  try {
    return event.data.json().notification;
  } catch {
    return { title: "Escalade", body: OPEN, navigate: "/" }; // a push that shows nothing costs the permission
  }
};

self.addEventListener("push", (event) => {
  const { title, navigate, actions = [], ...more } = told(event);
  const acknowledge = actions.find((one) => one.action === "acknowledge")?.navigate;
  const shown = { icon: "/static/icons/icon-192.png", ...more, data: { navigate, acknowledge } };
  if (acknowledge) shown.actions = [{ action: "acknowledge", title: "Acknowledge" }];
  event.waitUntil(self.registration.showNotification(title, shown));
});

const open = async (address) => {
  const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const page = pages.find((one) => one.url === new URL(address, location.origin).href);
  return page ? page.focus() : self.clients.openWindow(address);
};

// Only what the server answered counts: without an answer the page with the button opens.
const acknowledge = async ({ data, title }) => {
  let status = 0;
  try {
    status = (await fetch(data.acknowledge, { method: "POST", credentials: "omit" })).status;
  } catch { /* no connection: status stays 0 */ }
  if (status !== 200 && status !== 409) return open(data.acknowledge);
  const body = status === 200 ? "Acknowledged." : "It was resolved already.";
  return self.registration.showNotification(title, { body, tag: "escalade-said", data: { navigate: data.navigate } });
};

self.addEventListener("notificationclick", (event) => {
  const { action, notification } = event;
  notification.close();
  event.waitUntil(action === "acknowledge" ? acknowledge(notification) : open(notification.data?.navigate || "/"));
});
