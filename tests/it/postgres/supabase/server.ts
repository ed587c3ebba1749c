// The module that the edge functions import to be served.
export const serve = (handler) => globalThis.serveFunction(handler);
