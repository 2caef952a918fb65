import { defineCommand } from '../command/declaration.js';
import { grouped, parsed, required } from '../command/flags.js';
import { applyDeployment } from '../../api/deployment/apply-deployment.js';
import type { AdoptionSource } from '../../cluster/apply/plan-types.js';
import { UsageError } from '../../core/errors.js';
import { exitCodes } from '../exit-codes.js';
import { areSound, printApplied, readApproval, readCluster, readPlanOptions, readWait } from './approval.js';
import {
  approvalFlags,
  dataOutput,
  deploymentFlags,
  planFlags,
  waitFlags,
  packageArgument,
} from './flags.js';
import { renderInput } from './input.js';

const kinds = ['deployment', 'kubectl', 'helm', 'olm'] as const;

/** Reads a present owner: `KIND`, or `KIND:NAMESPACE/NAME`. Throws UsageError. */
function readSource(text: string): AdoptionSource {
  const [, kindText = '', name] = /^([a-z]+)(?::(.+))?$/.exec(text) ?? [];
  const kind = kinds.find((item) => item === kindText);
  if (
    kind === undefined ||
    (name !== undefined && !/^[^/]+\/[^/]+$/.test(name)) ||
    (kind === 'kubectl' && name)
  )
    throw new UsageError(`expected ${kinds.join(', ')}, or KIND:NAMESPACE/NAME`);
  return { kind, ...(name !== undefined && { name }) };
}

/** `opmate deployment adopt`; objects keep their identity and content. */
export const command = defineCommand({
  summary: 'make existing objects part of deployments, without deleting them',
  description:
    'Objects of the render change owner: of another deployment, of kubectl, of a Helm release, or of a ' +
    'ClusterServiceVersion of OLM v0. The plan lists them, the records of the present owner to delete, and its ' +
    'objects that are not part of the deployment.',
  arguments: [packageArgument],
  flags: {
    ...deploymentFlags,
    ...planFlags,
    ...approvalFlags,
    ...waitFlags,
    ...grouped('Behavior', {
      from: required(
        parsed(
          'owner',
          'present owner: kubectl, or deployment, helm or olm with :NAMESPACE/NAME',
          readSource,
        ),
      ),
    }),
    output: dataOutput,
  },
  commonFlags: [
    'file',
    'catalog',
    'from',
    'yes',
    'approve',
    'wait',
    'timeout',
    'kubeconfig',
    'context',
    'output',
  ],
  examples: {
    'Adopt objects that kubectl has applied': 'opmate deployment adopt -f deployment.yaml --from kubectl',
    'Adopt the objects of a Helm release':
      'opmate deployment adopt -f deployment.yaml --from helm:demo/demo --yes',
    'Hand an operator over to another deployment':
      'opmate deployment adopt -f new.yaml --from deployment:demo/old',
    'Adopt an operator that OLM v0 has installed':
      'opmate deployment adopt -f deployment.yaml --from olm:demo/demo.v1.2.0',
  },
  async runInSession({ context, args: [packageName], options, session }) {
    const { output, from } = options;
    const cluster = readCluster(options, session);
    const deployments = await renderInput(context, session, { options, packageName, cluster });
    if (!(await areSound(context, session, deployments))) return exitCodes.findings;
    let code: number = exitCodes.done;
    for (const deployment of deployments) {
      const applied = await applyDeployment(deployment, cluster, {
        ...readPlanOptions(options),
        ...readApproval(context, options, session, output),
        adopt: from,
        waitMs: readWait(options, context, deployment),
      });
      const made = await printApplied(context, deployment.name, applied, session, output);
      code = code === exitCodes.done ? made : code;
    }
    return code;
  },
});
