import { computeDigest } from '../../core/digest.js';
import { OpmateError, fileError } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { getText } from '../../document/json-fields.js';
import { statIfPresent } from '../../files/file-status.js';
import { readRegularFile } from '../../files/read-file.js';
import { replaceFile } from '../../files/replace-file.js';
import { findReference, withoutCredentials } from '../../core/reference.js';
import { parsePlace } from '../../source/parse-place.js';
import type { Session } from '../../source/session.js';
import type { SelectionBytes, SelectionImages, SelectionSummary, WrittenFile } from '../../view/responses.js';
import type { CatalogView } from '../../view/catalog-view.js';
import type { EditActions } from '../../view/view-server.js';
import { ImageSizes, planSelection, requireSelectionRequest } from './plan-selection.js';

/** Names and reasons of each kind that an answer has at most. */
const maxListed = 500;
/** Files that are larger were not written here, and are not overwritten. */
const maxFileBytes = 64 * 1024 * 1024;

/** Output file of the page of `view --edit`. */
interface EditTarget {
  /** Secret in the URL of the page. */
  token: string;
  /** As the user named it. */
  file: string;
  /** Absolute path. */
  path: string;
  /** Image of the catalog; empty for a catalog that is not an image in a registry. */
  catalog: string;
}

/** Plans the selection of the page with the engines of `mirror` and `catalog filter`, and writes it on request. */
export class SelectionEditor implements EditActions {
  readonly token: string;
  readonly file: string;
  readonly catalog: string;
  readonly #path: string;
  readonly #session: Session;
  readonly #sizes: ImageSizes;

  constructor({ token, file, path, catalog }: EditTarget, session: Session) {
    this.token = token;
    this.file = file;
    this.catalog = catalog;
    this.#path = path;
    this.#session = session;
    this.#sizes = new ImageSizes(session);
  }

  async plan(view: CatalogView, request: unknown): Promise<SelectionSummary> {
    const plan = await planSelection(view.selectable(), requireSelectionRequest(request), this.#session);
    return {
      ...plan,
      images: plan.images.length,
      packages: plan.packages.map((item) => ({
        ...item,
        channels: item.channels.map((channel) => ({
          ...channel,
          stranded: channel.stranded.slice(0, maxListed),
          strandedCount: channel.stranded.length,
        })),
      })),
      kept: plan.kept.slice(0, maxListed),
      unmet: plan.unmet.slice(0, maxListed),
      fileDigest: await this.#readFileDigest(),
    };
  }

  async listImages(view: CatalogView, request: unknown): Promise<SelectionImages> {
    const { images } = await planSelection(
      view.selectable(),
      requireSelectionRequest(request),
      this.#session,
    );
    return { images: [...images].sort((a, b) => compareBytes(a.image, b.image)) };
  }

  async measure(view: CatalogView, request: unknown): Promise<SelectionBytes> {
    const plan = await planSelection(view.selectable(), requireSelectionRequest(request), this.#session);
    const { bytes, unavailable } = await this.#sizes.measure(plan.images);
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
    const selection = requireSelectionRequest(request);
    if (selection.kind === 'imageset' && selection.catalog === '') {
      throw new OpmateError('USAGE', 'catalog: missing', { hint: 'specify the catalog image' });
    }
    const { text } = await planSelection(view.selectable(), selection, this.#session);
    if ((await this.#readFileDigest()) !== getText(request, 'fileDigest')) {
      const hint = 'review the file, then save again to overwrite it';
      throw new OpmateError('INVALID', 'has changed since the selection was planned', {
        subject: this.file,
        hint,
      });
    }
    await replaceFile(this.#path, text);
    return { file: this.file, bytes: Buffer.byteLength(text) };
  }

  /** Returns the digest of the file that is written; empty if missing. Throws OpmateError. */
  async #readFileDigest(): Promise<string> {
    if ((await statIfPresent(this.#path)) === undefined) return '';
    try {
      return computeDigest(await readRegularFile(this.#path, maxFileBytes));
    } catch (error) {
      throw fileError(this.file, error);
    }
  }
}

/** Returns the image of a catalog reference, without credentials; empty for other references. */
export async function imageOfCatalog(reference: string): Promise<string> {
  const place = await parsePlace(reference, { purpose: 'catalog' });
  const parsed = place.kind === 'image' ? findReference(place.ref) : undefined;
  return parsed?.transport === 'docker' ? withoutCredentials(reference) : '';
}
