import type { DeleteDeploymentOptions, DeletedDeployment } from '../../api/deployment/delete-deployment.js';
import { toDeletionDocument } from './data.js';
import { OpmateError } from '../../core/errors.js';
import type { FlagValues } from '../command/flags.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { encodeData } from '../reports/encode-data.js';
import type { CommandSession } from '../session.js';
import { printFindings } from '../bundle/findings.js';
import { type DataFormat, confirm } from './approval.js';
import type { approvalFlags } from './flags.js';
import { deletedText, deletionText } from './plan-text.js';

/** Returns how the plan of a deletion is shown and approved. */
export function readDeletionApproval(
  context: CommandContext,
  { approve, yes = false }: FlagValues<typeof approvalFlags>,
  { signal }: CommandSession,
  output: DataFormat,
): Pick<DeleteDeploymentOptions, 'approve' | 'onPlanned'> {
  return {
    onPlanned: (plan) =>
      writeAll(output === 'text' ? context.stdout : context.stderr, deletionText(plan), signal),
    approve:
      approve ??
      (yes
        ? () => true
        : ({ place, approval }) => confirm(context, { verb: 'delete', ...place, approval, offersYes: true })),
  };
}

/** Prints the result of a deletion. Returns the exit code. */
export async function printDeleted(
  context: CommandContext,
  name: string,
  deleted: DeletedDeployment,
  { signal }: CommandSession,
  output: DataFormat,
): Promise<number> {
  switch (deleted.state) {
    case 'deleted': {
      const { plan, report } = deleted;
      const document = { ...toDeletionDocument(plan), status: { ...report } };
      await writeAll(
        context.stdout,
        output === 'text' ? deletedText(name, report) : encodeData(document, output),
        signal,
      );
      return exitCodes.done;
    }
    case 'declined':
      throw new OpmateError('INVALID', `${name}: not deleted: declined`);
    case 'refused':
      await printFindings(context, deleted.findings);
      return exitCodes.findings;
  }
}
