"use strict";
// Keeps static files, whose addresses name what is in them, and one page that says that there is no connection.
// What a page shows is never kept: it would be old, and look true.
importScripts("/static/push-worker.js");

const KEPT = "static-1", AWAY = "/static/away.html", STYLE = "/static/ack.css";

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(caches.open(KEPT).then((cache) => cache.addAll([AWAY, STYLE])));
});

self.addEventListener("activate", (event) => event.waitUntil((async () => {
  const others = (await caches.keys()).filter((name) => name !== KEPT);
  await Promise.all(others.map((name) => caches.delete(name)));
  await self.clients.claim();
})()));

const kept = async (request) => {
  const cache = await caches.open(KEPT), found = await cache.match(request);
  if (found) return found;
  const answer = await fetch(request);
  if (answer.ok) {
    await cache.delete(request, { ignoreSearch: true }); // the version before this one
    await cache.put(request, answer.clone());
  }
  return answer;
};

self.addEventListener("fetch", (event) => {
  const { request } = event, url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin) return;
  if (url.pathname.startsWith("/static/") && url.searchParams.has("v")) event.respondWith(kept(request));
  else if (request.mode === "navigate") event.respondWith(fetch(request).catch(() => caches.match(AWAY)));
  else if (url.pathname === STYLE) event.respondWith(fetch(request).catch(() => caches.match(STYLE)));
});
