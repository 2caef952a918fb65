// A separate ES module: in the published bundle, a CommonJS module imported lazily has no named exports.
export { pack } from 'tar-stream';
