// Turns bundle directories into plain manifests, one after another in one process, and prints how many.
import { convertRegistryV1 } from '../../dist/bundle/plain/registry-v1/convert.js';
import { writeObjects } from '../../dist/bundle/plain/write.js';
import { readBundleDirectory } from '../../dist/bundle/read.js';

let done = 0;
for (const directory of process.argv.slice(2)) {
  const files = await readBundleDirectory(directory);
  // For all namespaces, or else whatever the operator can.
  for (const watchNamespaces of [[], ['op-system'], ['watched']]) {
    const options = { installNamespace: 'op-system', watchNamespaces, provider: 'cert-manager' };
    const { objects, findings } = convertRegistryV1(files, options);
    if (findings.length > 0) continue;
    let size = 0;
    for await (const piece of writeObjects(objects, 'yaml')) size += piece.length;
    if (size > 0) done++;
    break;
  }
}
console.log(done);
