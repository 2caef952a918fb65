// Publishes an operator: checks its bundle and adds it to a channel of a catalog directory.
//
//     node docs/examples/publish-operator.js BUNDLE CATALOG CHANNEL
import { addToCatalog, openSession, validateBundle } from 'opmate';

const [bundle, catalog, channel] = process.argv.slice(2);
const session = await openSession();
try {
  const { findings } = await validateBundle(bundle, session);
  const errors = findings.filter(({ severity }) => severity === 'error');
  for (const { problem } of errors) console.log(problem);
  if (errors.length > 0) {
    console.log('the bundle is not valid');
    process.exitCode = 3;
  } else {
    // Changes all files or none, after validating the result.
    const imageTemplate = 'quay.io/example/{{.Package}}:v{{.Version}}';
    const options = { channels: [channel], imageTemplate };
    const { changes } = await addToCatalog(catalog, [bundle], session, options);
    for (const change of changes) console.log(change);
  }
} finally {
  await session.close();
}
