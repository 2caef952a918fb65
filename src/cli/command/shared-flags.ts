import { reportFormats } from '../reports/formats.js';
import { type Flag, type FlagTraits, choice, flag, text } from './flags.js';

/** `-o` with these formats; undefined unless it has a default. */
export function outputFormat<const C extends string, D extends C | undefined = undefined>(
  choices: readonly C[],
  traits: { default?: D; defaultText?: string; otherwise?: string } = {},
): Flag<C | D> {
  return choice('format', choices, 'output format', { short: 'o', group: 'Output', ...traits });
}

/** `--to` of commands that print objects; it writes YAML. */
export const objectDirectory: Flag<string | undefined> = text(
  'directory',
  'write one file per object to this new or empty directory',
  { aliases: ['output-dir'], group: 'Output', excludes: ['output=json'] },
);

/** `-o` of commands that write catalogs or records. */
export const catalogOutput = outputFormat(['json', 'yaml'], { default: 'json' });

/** `-o` of commands that report findings. */
export const reportOutput = outputFormat(reportFormats, { defaultText: 'text' });

/** `--migrate-level`; the level is checked by `resolveMigrationLevel`, in the words of `opm`. */
export const migrateLevel: Flag<string | undefined> = text('level', 'run migrations up to this level', {
  choices: ['none', 'bundle-object-to-csv-metadata', 'all'],
});

/** Returns the flag for the image references of bundles without one. */
export function imageTemplate(of: string, traits: FlagTraits = {}): Flag<string | undefined> {
  return text('template', `image reference template for ${of}`, traits);
}

/** `--allow-missing` of commands that compare with a released catalog, which the flag `needed` names. */
export function allowMissing(needed?: string): Flag<boolean> {
  return flag('for a first release: an image that does not exist is an empty catalog', {
    ...(needed !== undefined && { needs: needed }),
  });
}

/** `--dry-run` of commands that edit files. */
export const editDryRun: Flag<boolean> = flag('print the changes as a unified diff without writing them', {
  group: 'Output',
});
