// An ES module of its own, since a bundle gives a CommonJS module that is imported late no named exports.
export { pack } from 'tar-stream';
