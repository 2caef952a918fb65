// An ES module of its own, since a bundle gives a CommonJS module that is imported late no named exports.
export { HttpProxyAgent } from 'http-proxy-agent';
export { HttpsProxyAgent } from 'https-proxy-agent';
