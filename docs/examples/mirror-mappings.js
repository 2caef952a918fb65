// Copies images by the SOURCE=TARGET lines of a file, and reports missing images.
//
//     node docs/examples/mirror-mappings.js MAPPING-FILE [--use-http]
import { readFile } from 'node:fs/promises';
import { mirrorMappings, openSession, readMappings } from 'opmate';

const [file, ...flags] = process.argv.slice(2);
const session = await openSession({ registry: { useHttp: flags.includes('--use-http') } });
try {
  const { mappings } = readMappings([], { text: await readFile(file, 'utf8'), file });
  const { done, missing } = await mirrorMappings(mappings, session, { skipMissing: true });
  for (const { transfer, digest } of done) console.log(`${digest} ${transfer.targetName}`);
  for (const { sourceName } of missing) console.error(`${sourceName}: not found`);
  process.exitCode = missing.length === 0 ? 0 : 1;
} finally {
  await session.close();
}
