// Gates a catalog in CI: exits with 3 if the catalog is invalid or catalog doctor reports errors.
//
//     node docs/examples/gate-catalog.js CATALOG
import { diagnoseCatalog, openSession, validate } from 'opmate';

const [catalog = 'catalog'] = process.argv.slice(2);
const session = await openSession();
try {
  const { passed } = await validate(catalog, session);
  const findings = await diagnoseCatalog(catalog, session);
  for (const { severity, code, problem } of findings) console.log(`${severity} ${code}: ${problem}`);
  const isGood = passed && findings.every(({ severity }) => severity !== 'error');
  console.log(isGood ? 'the catalog can be released' : 'the catalog cannot be released');
  process.exitCode = isGood ? 0 : 3;
} finally {
  await session.close();
}
