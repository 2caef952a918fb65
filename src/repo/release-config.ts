import { OpmateError } from '../core/errors.js';
import type { DocumentPath } from '../core/diagnostic.js';
import { type OperatorRepository, pathIn } from './repository.js';
import { type RepositoryDocument, readRepositoryFile } from './repository-file.js';
import type { TemplateRelease } from './edit/release-template.js';

/** `release-config.yaml` of a bundle. */
interface ReleaseConfig {
  document: RepositoryDocument;
  templates: (TemplateRelease & { path: DocumentPath })[];
}

/** Maximum number of templates, channels and skipped bundles. */
const maxItems = 1000;

/** Reads `release-config.yaml`. Throws OpmateError NOT_FOUND, and DiagnosticsError with all problems. */
export async function readReleaseConfig(
  repository: OperatorRepository,
  operator: string,
  version: string,
): Promise<ReleaseConfig> {
  const parts = ['operators', operator, version, 'release-config.yaml'];
  const document = await readRepositoryFile(repository, parts, 'configuration');
  if (document === undefined) {
    throw new OpmateError('NOT_FOUND', 'no such file or directory', {
      about: pathIn(repository, ...parts),
      hint: 'add release-config.yaml with catalog_templates',
    });
  }
  const { root, diagnostics } = document;
  const fields = root.object(['merge', 'catalog_templates']);
  const items = fields?.catalog_templates.list(maxItems) ?? [];
  if (fields !== undefined && fields.catalog_templates.isPresent && items.length === 0) {
    fields.catalog_templates.fail('expected at least one item');
  }
  const templates = items.flatMap((item) => {
    const keys = ['template_name', 'channels', 'defaultChannel', 'replaces', 'skips', 'skipRange'] as const;
    const entry = item.object(keys, { unknown: 'warn' });
    const templateName = entry?.template_name.text();
    if (entry === undefined || templateName === undefined) return [];
    const channels = (entry.channels.list(maxItems) ?? []).flatMap((channel) => channel.text() ?? []);
    if (entry.channels.isPresent && channels.length === 0) entry.channels.fail('expected at least one item');
    const release = {
      templateName,
      channels,
      defaultChannel: entry.defaultChannel.optionalText(),
      replaces: entry.replaces.optionalText(),
      skips: entry.skips.isPresent ? entry.skips.optionalTextList(maxItems) : undefined,
      skipRange: entry.skipRange.optionalText(),
      path: item.path,
    };
    const { defaultChannel } = release;
    if (defaultChannel !== undefined && !channels.includes(defaultChannel)) {
      entry.defaultChannel.fail(`"${defaultChannel}" is not among the channels`, {
        hint: 'add it to channels',
      });
    }
    return [release];
  });
  diagnostics.throwIfErrors();
  return { document, templates };
}
