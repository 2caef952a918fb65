import { suggestOneOf } from '../../core/suggest.js';
import { LimitError, OpmateError } from '../../core/errors.js';
import { nearestPlace } from '../../document/places.js';
import { decodeUtf8, quoteGo } from '../../document/go-json.js';
import { foldFieldName } from '../../document/go-json-fold.js';
import { type JsonValue, isJsonObject } from '../../document/json.js';
import { YamlError, parseYamlWithPlaces } from '../../document/yaml.js';
import type { PlacedYaml, YamlPath } from '../../document/yaml/full.js';
import { formatFloatKey } from '../../document/yaml/scalar.js';
import { type Archetype, type ChannelKind, archetypes } from '../../graph/template-semver.js';
import { type OpenFile, checkYamlEncoding } from '../documents.js';
import { readFully } from '../file-access.js';
import { TemplateErrors, kindFault, rendering } from './template-errors.js';
import { type SemverTemplate, type TemplateImage, templateSchemas } from './template.js';

/** Maximum bytes of a semver template: a hundred thousand images. */
const maxSemverSize = 16 * 1024 * 1024;

async function readSmallFile(file: OpenFile): Promise<Buffer> {
  const size = Math.min((await file.handle.stat()).size, maxSemverSize + 1);
  const bytes = Buffer.allocUnsafe(size);
  const length = await readFully(file.handle, bytes, 0, file.label);
  if (length > maxSemverSize) {
    throw new LimitError(`a semver template of more than ${maxSemverSize} bytes`, {
      about: file.label,
    });
  }
  return bytes.subarray(0, length);
}

const unreadable = `${rendering}render: unable to read file: `;

const decoding = 'error unmarshaling JSON: while decoding JSON: ';

/**
 * Reads a semver template, which is one YAML document, like a strict Go decoder. Throws OpmateError SYNTAX, LIMIT or
 * INVALID with all problems; several have an AggregateError as cause.
 */
export async function readSemverTemplate(file: OpenFile): Promise<SemverTemplate> {
  return new SemverTemplateReader(file.label, await readPlacedYaml(file)).read();
}

async function readPlacedYaml(file: OpenFile): Promise<PlacedYaml> {
  try {
    const bytes = await readSmallFile(file);
    checkYamlEncoding(bytes);
    return parseYamlWithPlaces(decodeUtf8(bytes));
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    const message = `${unreadable}error converting YAML to JSON: ${error.message}`;
    throw new OpmateError('SYNTAX', message, { file: file.label, line: error.line, cause: error });
  }
}

/** Reads the fields of a template, and reports their problems in the words of a strict Go decoder. */
class SemverTemplateReader {
  readonly #file: string;
  readonly #placed: PlacedYaml;
  readonly #errors: TemplateErrors;

  constructor(file: string, placed: PlacedYaml) {
    this.#file = file;
    this.#placed = placed;
    this.#errors = new TemplateErrors(file, (path) => this.#findLine(path));
  }

  async read(): Promise<SemverTemplate> {
    this.#reportDuplicates();
    const fields = this.#readFields(this.#placed.value, [], 'value of type semver.SemverTemplateData', [
      'schema',
      'generateMajorChannels',
      'generateMinorChannels',
      'defaultChannelTypePreference',
      ...archetypes,
    ]);
    const schema = this.#readText(fields, 'schema', 'SemverTemplateData.schema');
    const major = this.#readFlag(fields, 'generateMajorChannels');
    // Without a choice, channels are of minor versions.
    const minor = this.#readFlag(fields, 'generateMinorChannels') || !major;
    const preferenceField = 'SemverTemplateData.defaultChannelTypePreference';
    const wish = this.#readText(fields, 'defaultChannelTypePreference', preferenceField, 'semver.StreamType');
    const bundles = archetypes.flatMap((archetype) =>
      this.#readImages(fields, archetype).map((image) => ({ archetype, ...image })),
    );
    await this.#errors.throwIfAny();
    const wanted = templateSchemas.semver;
    if (schema !== wanted) {
      const problem = `readFile: input file has unknown schema, should be ${quoteGo(wanted)}`;
      this.#report(fields.get('schema')?.path ?? [], problem, 'use the type of its schema');
    }
    const preference = this.#readPreference(fields, wish, { major, minor });
    await this.#errors.throwIfAny();
    const findLine = (path: YamlPath): Promise<number> => this.#findLine(path);
    const generate = { major, minor, preference };
    return { type: 'semver', generate, bundles, file: this.#file, findLine, warnings: [] };
  }

  #findLine(path: YamlPath): Promise<number> {
    return Promise.resolve(nearestPlace(this.#placed, path)?.line ?? 1);
  }

  #reportDuplicates(): void {
    for (const { path, first } of this.#placed.duplicates) {
      const key = quoteGo(String(path.at(-1)));
      const message = `error converting YAML to JSON: yaml: unmarshal errors: key ${key} already set in map`;
      this.#report(path, message, `remove it: first defined on line ${first.line}`);
    }
  }

  #readPreference(fields: Fields, wish: string, generate: { major: boolean; minor: boolean }): ChannelKind {
    const path = fields.get('defaultChannelTypePreference')?.path ?? [];
    if (wish === '') return generate.minor ? 'minor' : 'major';
    if (wish !== 'minor' && wish !== 'major') {
      const problem = `unknown DefaultChannelTypePreference: ${quoteGo(wish)}\nValid values are 'major' or 'minor'`;
      this.#report(path, problem);
      return 'minor';
    }
    if (!generate[wish]) {
      const flag = wish === 'minor' ? 'generateMinorChannels' : 'generateMajorChannels';
      this.#report(
        path,
        `schema attribute mismatch: DefaultChannelTypePreference set to '${wish}' doesn't make sense if not generating ${wish}-version channels`,
        `set ${flag}: true, or remove the preference`,
      );
    }
    return wish;
  }

  #report(path: YamlPath, problem: string, hint?: string): void {
    this.#errors.report(path, unreadable + problem, hint);
  }

  #reportKind(path: YamlPath, value: JsonValue, target: string): void {
    this.#report(path, decoding + kindFault(value, target));
  }

  /** Returns the known fields of an object by name; reports unknown fields and names that differ in case only. */
  #readFields(value: JsonValue, path: YamlPath, target: string, names: readonly string[]): Fields {
    const fields: Fields = new Map();
    if (value === null) return fields;
    if (!isJsonObject(value)) {
      this.#reportKind(path, value, target);
      return fields;
    }
    for (const key of Object.keys(value)) {
      const name = names.find((text) => foldFieldName(text) === foldFieldName(key));
      const where = [...path, key];
      const before = name === undefined ? undefined : fields.get(name);
      if (name === undefined) {
        this.#report(where, `${decoding}json: unknown field ${quoteGo(key)}`, suggestOneOf(names));
      } else if (before !== undefined) {
        const keys = [String(before.path.at(-1)), key].join(' ');
        const problem = `duplicate keys for key ${quoteGo(name)}: [${keys}]`;
        this.#report(where, problem, 'keep one of the keys; they differ in case only');
      } else fields.set(name, { value: value[key] as JsonValue, path: where });
    }
    return fields;
  }

  #readFlag(fields: Fields, name: string): boolean {
    const { value = null, path = [] } = fields.get(name) ?? {};
    if (typeof value === 'boolean') return value;
    if (value !== null) {
      this.#reportKind(path, value, `struct field SemverTemplateData.${name} of type bool`);
    }
    return false;
  }

  /** Returns a string; numbers and booleans are converted, as Go does. */
  #readText(fields: Fields, name: string, field: string, type = 'string'): string {
    const { value = null, path = [] } = fields.get(name) ?? {};
    if (value === null) return '';
    if (typeof value === 'string') return value;
    if (typeof value !== 'object') {
      return typeof value === 'number' && !Number.isSafeInteger(value)
        ? formatFloatKey(value)
        : String(value);
    }
    this.#reportKind(path, value, `struct field ${field} of type ${type}`);
    return '';
  }

  #readImages(fields: Fields, archetype: Archetype): TemplateImage[] {
    const archetypeField = fields.get(archetype);
    if (archetypeField === undefined) return [];
    const owner = `struct field SemverTemplateData.${archetype} of type semver.channelBundles`;
    const inner = this.#readFields(archetypeField.value, archetypeField.path, owner, ['bundles']);
    const list = inner.get('bundles');
    if (list === undefined || list.value === null) return [];
    const listField = `channelBundles.${archetype}.bundles`;
    if (!Array.isArray(list.value)) {
      this.#reportKind(list.path, list.value, `struct field ${listField} of type []semver.bundleEntry`);
      return [];
    }
    const images: TemplateImage[] = [];
    for (const [index, item] of list.value.entries()) {
      const path = [...list.path, index];
      const owner = `struct field ${listField} of type semver.bundleEntry`;
      const entry = this.#readFields(item, path, owner, ['image']);
      const image = this.#readText(entry, 'image', `bundleEntry.${archetype}.bundles.image`);
      images.push({ image, path: entry.get('image')?.path ?? path });
    }
    return images;
  }
}

type Fields = Map<string, { value: JsonValue; path: YamlPath }>;
