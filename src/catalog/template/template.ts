import type { Diagnostic } from '../../core/diagnostic.js';
import type { YamlPath } from '../../document/yaml/full.js';
import type { Archetype, ChannelKind } from '../../graph/template-semver.js';
import type { DecodedBlob } from '../blob.js';

/**
 * Catalog templates: short files that describe a catalog, most of which is fetched when rendering. (Source:
 * alpha/template of operator-registry.)
 */

/** Schemas of the template kinds by name. */
export const templateSchemas = {
  basic: 'olm.template.basic',
  semver: 'olm.semver',
  substitutes: 'olm.template.substitutes',
} as const;

export type TemplateType = keyof typeof templateSchemas;

/** Reports whether text is the name of a template kind. */
export function isTemplateType(text: string): text is TemplateType {
  return Object.hasOwn(templateSchemas, text);
}

/** An image in a template with its place. */
export interface TemplateImage {
  image: string;
  path: YamlPath;
}

/** A blob among the entries of a template. */
export interface TemplateEntry {
  blob: DecodedBlob;
  path: YamlPath;
}

interface TemplatePlaces {
  /** Name of the file in messages. */
  file: string;
  /** Returns the one-based line of a part of the template. Reads the file again. */
  findLine(path: YamlPath): Promise<number>;
  /** Content without effect; `findLine` returns the line of each path. */
  warnings: Diagnostic[];
}

/** A catalog whose bundles are image references. */
export interface BasicTemplate extends TemplatePlaces {
  type: 'basic';
  /** Entries; bundles among them have an image and no content. */
  entries: TemplateEntry[];
}

/** Lists of bundles from which channels are generated. */
export interface SemverTemplate extends TemplatePlaces {
  type: 'semver';
  generate: { major: boolean; minor: boolean; preference: ChannelKind };
  bundles: (TemplateImage & { archetype: Archetype })[];
}

/** A bundle image, and the name of the bundle that it substitutes. */
export interface Substitution {
  name: string;
  base: string;
  path: YamlPath;
}

/** A complete catalog, and bundles that substitute others in it. */
export interface SubstitutesTemplate extends TemplatePlaces {
  type: 'substitutes';
  entries: TemplateEntry[];
  substitutions: Substitution[];
}

export type Template = BasicTemplate | SemverTemplate | SubstitutesTemplate;
