import { withOpen } from '../../core/concurrency.js';
import { convertToTemplate } from '../../api/template/convert-template.js';
import { argument, defineCommand } from '../command/declaration.js';
import { catalogOutput } from '../command/shared-flags.js';
import type { ConvertedType } from '../../catalog/template/convert.js';
import { statIfPresent } from '../../files/file-status.js';
import { openInput } from '../opened-input.js';
import { writePieces } from '../session.js';

function convertCommand(type: ConvertedType, summary: string) {
  return defineCommand({
    summary,
    arguments: [argument('[catalog]', 'file, directory or image (default: stdin)')],
    flags: { output: catalogOutput },
    examples: {
      [`Create a ${type} template from a catalog directory`]: `opmate template convert ${type} ./catalog`,
      [`Create a ${type} template from a catalog image, as YAML`]: `opmate template convert ${type} registry.example.com/demo/catalog:v1 -o yaml`,
    },
    async runInSession({ context, args: [reference = '-'], options: { output: format }, session }) {
      const input = (await isPipe(reference)) ? await openInput(reference, context) : undefined;
      try {
        await withOpen(convertToTemplate(input ?? reference, session, { type, format }), async (template) => {
          await writePieces(context, session, template.write(context));
        });
      } finally {
        await input?.close();
      }
    },
  });
}

/** `opmate template convert basic`. */
export const basic = convertCommand('basic', 'create a basic template, which names bundles by image');
/** `opmate template convert substitutes`. */
export const substitutes = convertCommand(
  'substitutes',
  'create a substitutes template, which holds the whole catalog',
);

/** Reports whether an input can be read only once. */
async function isPipe(reference: string): Promise<boolean> {
  if (reference === '-') return true;
  const status = await statIfPresent(reference);
  return status?.isFIFO() === true || status?.isCharacterDevice() === true;
}
