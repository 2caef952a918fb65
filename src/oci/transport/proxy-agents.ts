// A separate ES module: in a bundle, a CommonJS module that is imported late has no named exports.
export { HttpProxyAgent } from 'http-proxy-agent';
export { HttpsProxyAgent } from 'https-proxy-agent';
