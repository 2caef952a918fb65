// Shows the changes of a deployment to a cluster, and applies it if its hash is approved. Uses the current context of
// kubectl.
//
//     node docs/examples/install-operator.js DEPLOYMENT.yaml [APPROVED-HASH...]
import { applyDeployment, checkDeployments, openCluster, openSession, renderDeployments } from 'opmate';

const [file, ...approve] = process.argv.slice(2);
const session = await openSession();
try {
  const deployments = await renderDeployments([file], session);
  const findings = checkDeployments(deployments);
  for (const { subject, problem } of findings) console.log(`${subject}: ${problem}`);
  const cluster = openCluster(session);
  for (const deployment of findings.length === 0 ? deployments : []) {
    const { state, report } = await applyDeployment(deployment, cluster, {
      onPlanned({ changes }) {
        for (const { change, id } of changes) console.log(`${change} ${id.kind} ${id.name}`);
      },
      approve: ({ deployment: { hash } }) => approve.includes(hash),
    });
    const result = state === 'applied' ? `revision ${report?.revision ?? 'unchanged'}` : deployment.hash;
    console.log(`${deployment.name}: ${state}: ${result}`);
  }
} finally {
  await session.close();
}
