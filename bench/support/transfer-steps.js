// Pins, surveys and, if told, copies images in a process of its own: TRANSFER-STEPS SOURCE TARGET COUNT plan|copy|again.
import { createConnection } from '../../dist/oci/registry/connection.js';
import { pinTransfers, surveyTransfers } from '../../dist/mirror/transfer/transfer.js';
import { copyTransfers } from '../../dist/mirror/transfer/copy-transfers.js';
import { parseReference } from '../../dist/index.js';

const [source, target, count, what] = process.argv.slice(2);
const connection = createConnection({ environment: {}, homeDirectory: '/nonexistent', useHttp: true });
const options = {
  session: { connect: () => connection },
  maxPerRegistry: 6,
  continueOnError: false,
  skipMissing: false,
};
const transfers = Array.from({ length: Number(count) }, (_, i) => ({
  source: parseReference(`${source}/image/${i}:v1`),
  target: parseReference(`${target}/image/${i}:v1`),
  sourceName: `source ${i}`,
  targetName: `target ${i}`,
}));
const { pinned } = await pinTransfers(transfers, options);
// As a lock gives them.
const known = pinned.map((one) => ({
  ...one,
  contents: {
    ...one.contents,
    manifests: one.contents.manifests.map((each) => ({ ...each, bytes: undefined })),
  },
}));
process.stdout.write('pinned\n');
const { surveyed } = await surveyTransfers(what === 'again' ? known : pinned, options);
if (what !== 'plan') {
  const report = await copyTransfers(surveyed, options);
  process.stdout.write(`${report.done.length} done, ${report.blobs} blobs\n`);
}
connection.close();
