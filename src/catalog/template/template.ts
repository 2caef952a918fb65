import type { Diagnostic } from '../../core/diagnostic.js';
import type { YamlPath } from '../../document/yaml-full.js';
import type { Archetype, ChannelKind } from '../../graph/template-semver.js';
import type { CatalogBlob } from '../blob.js';

/**
 * Catalog templates: short files that stand for a catalog, most of which is fetched when they are rendered.
 * (Source: alpha/template of operator-registry.)
 */

/** Kinds of templates by name, each with its schema. */
export const templateSchemas = {
  basic: 'olm.template.basic',
  semver: 'olm.semver',
  substitutes: 'olm.template.substitutes',
} as const;

export type TemplateType = keyof typeof templateSchemas;

/** Whether a text is the name of a kind of template. */
export function isTemplateType(text: string): text is TemplateType {
  return Object.hasOwn(templateSchemas, text);
}

/** An image that a template names, and where. */
export interface TemplateImage {
  image: string;
  path: YamlPath;
}

/** A blob among the entries of a template. */
export interface TemplateEntry {
  blob: CatalogBlob;
  path: YamlPath;
}

interface TemplatePlaces {
  /** How messages name the file. */
  file: string;
  /** The line, from 1, on which a part of the template is written. Reads the file again. */
  findLine(path: YamlPath): Promise<number>;
  /** What is in the template and has no effect; the line of each is `findLine` of its path. */
  warnings: Diagnostic[];
}

/** A catalog in which bundles are only named by their images. */
export interface BasicTemplate extends TemplatePlaces {
  type: 'basic';
  /** Bundles among them have an image and no content. */
  entries: TemplateEntry[];
}

/** Lists of bundles from which channels are generated. */
export interface SemverTemplate extends TemplatePlaces {
  type: 'semver';
  generate: { major: boolean; minor: boolean; preference: ChannelKind };
  bundles: (TemplateImage & { archetype: Archetype })[];
}

/** A bundle image, and the name of the bundle whose place it takes. */
export interface Substitution {
  name: string;
  base: string;
  path: YamlPath;
}

/** A whole catalog, and bundles that take the place of others in it. */
export interface SubstitutesTemplate extends TemplatePlaces {
  type: 'substitutes';
  entries: TemplateEntry[];
  substitutions: Substitution[];
}

export type Template = BasicTemplate | SemverTemplate | SubstitutesTemplate;
