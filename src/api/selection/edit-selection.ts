import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { computeDigest } from '../../core/digest.js';
import { OpmateError, throwFileError } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { getText } from '../../document/json-fields.js';
import { statIfPresent } from '../../files/file-status.js';
import { readRegularFile } from '../../files/read-file.js';
import { replaceFile } from '../../files/replace-file.js';
import { findReference, withoutCredentials } from '../../core/reference.js';
import { parseCatalogPlace } from '../../source/parse-place.js';
import type { Session } from '../../source/session.js';
import type { SelectionBytes, SelectionImages, SelectionSummary, WrittenFile } from '../../view/responses.js';
import type { CatalogView } from '../../view/catalog-view.js';
import type { EditActions } from '../../view/view-server.js';
import { type SelectionPlan, ImageSizes, planSelection, requireSelectionRequest } from './plan-selection.js';

/** Maximum names and reasons of each kind in a response. */
const maxListed = 500;
/** Files that are larger were not written here, and are not overwritten. */
const maxFileBytes = 64 * 1024 * 1024;

/**
 * Returns actions that plan a selection of the page with the engines of `mirror` and `catalog filter`, and write it to
 * a file on request; `true` names it by what is written by default.
 */
export async function createEditActions(
  reference: string,
  to: string | true,
  session: Session,
): Promise<EditActions> {
  const catalog = await imageOfCatalog(reference, session);
  const file = to !== true ? to : catalog === '' ? 'catalog-filter.yaml' : 'imageset-config.yaml';
  const editor = new SelectionEditor(file, session);
  return {
    token: randomBytes(16).toString('hex'),
    file,
    catalog,
    actions: {
      plan: (view, request) => editor.summarize(view, request),
      images: (view, request) => editor.listImages(view, request),
      bytes: (view, request) => editor.measure(view, request),
      write: (view, request) => editor.write(view, request),
    },
  };
}

/** Plans selections of a page, and writes them to a file. Methods throw OpmateError. */
class SelectionEditor {
  /** As the user wrote it. */
  readonly #file: string;
  readonly #path: string;
  readonly #session: Session;
  readonly #sizes: ImageSizes;

  constructor(file: string, session: Session) {
    this.#file = file;
    this.#path = path.resolve(session.workingDirectory, file);
    this.#session = session;
    this.#sizes = new ImageSizes(session);
  }

  async summarize(view: CatalogView, request: unknown): Promise<SelectionSummary> {
    const planned = await this.#plan(view, request);
    return {
      ...planned,
      images: planned.images.length,
      packages: planned.packages.map((item) => ({
        ...item,
        channels: item.channels.map((channel) => ({
          ...channel,
          stranded: channel.stranded.slice(0, maxListed),
          strandedCount: channel.stranded.length,
        })),
      })),
      kept: planned.kept.slice(0, maxListed),
      unmet: planned.unmet.slice(0, maxListed),
      fileDigest: await this.#readFileDigest(),
    };
  }

  async listImages(view: CatalogView, request: unknown): Promise<SelectionImages> {
    const { images } = await this.#plan(view, request);
    return { images: [...images].sort((a, b) => compareBytes(a.image, b.image)) };
  }

  async measure(view: CatalogView, request: unknown): Promise<SelectionBytes> {
    const { images } = await this.#plan(view, request);
    const { bytes, unavailable } = await this.#sizes.measure(images);
    return {
      images: bytes.images,
      bytes: bytes.bytes,
      packages: bytes.packages.map(({ name, bytes: all, ownBytes }) => ({ name, bytes: all, ownBytes })),
      unavailable: unavailable.slice(0, maxListed),
      unavailableCount: unavailable.length,
    };
  }

  /** Writes the selection, unless the file has changed since the page read it. */
  async write(view: CatalogView, request: unknown): Promise<WrittenFile> {
    const { kind, catalog } = requireSelectionRequest(request);
    if (kind === 'imageset' && catalog === '') {
      throw new OpmateError('USAGE', 'catalog: missing', { hint: 'specify the catalog image' });
    }
    const { text } = await this.#plan(view, request);
    if ((await this.#readFileDigest()) !== getText(request, 'fileDigest')) {
      const hint = 'review the file, then save again to overwrite it';
      throw new OpmateError('INVALID', 'has changed since the selection was planned', {
        subject: this.#file,
        hint,
      });
    }
    await replaceFile(this.#path, text);
    return { file: this.#file, bytes: Buffer.byteLength(text) };
  }

  #plan(view: CatalogView, request: unknown): Promise<SelectionPlan> {
    return planSelection(view.selectable(), requireSelectionRequest(request), this.#session);
  }

  /** Returns the digest of the file that is written; empty if missing. */
  async #readFileDigest(): Promise<string> {
    if ((await statIfPresent(this.#path)) === undefined) return '';
    const content = await readRegularFile(this.#path, maxFileBytes).catch(throwFileError(this.#file));
    return computeDigest(content);
  }
}

/** Returns the image of a catalog reference, without credentials; empty for other references. */
async function imageOfCatalog(reference: string, session: Session): Promise<string> {
  const place = await parseCatalogPlace(reference, session);
  const parsed = place.kind === 'image' ? findReference(place.ref) : undefined;
  return parsed?.transport === 'docker' ? withoutCredentials(reference) : '';
}
