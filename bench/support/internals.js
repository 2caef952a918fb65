// What benchmarks take from inside the project to make their inputs.
export { readBundleDirectory } from '../../dist/bundle/read.js';
export { renderBundleFiles } from '../../dist/bundle/render.js';
export { encodeBlob } from '../../dist/model/encode.js';
export { addBundles } from '../../dist/sqlite/add/add.js';
export { editDatabase } from '../../dist/sqlite/schema/edit.js';
