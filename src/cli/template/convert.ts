import { withOpen } from '../../core/concurrency.js';
import { convertToTemplate } from '../../api/template/convert-template.js';
import { argument, defineCommand } from '../command/declaration.js';
import { catalogOutput } from '../command/shared-flags.js';
import type { ConvertedType } from '../../catalog/template/convert.js';
import { stdinName } from '../input.js';
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
      const input = reference === '-' ? { stream: context.stdin, name: stdinName } : reference;
      await withOpen(convertToTemplate(input, session, { type, format }), async (template) => {
        await writePieces(context, session, template.write(context));
      });
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
