import { quoteGo } from '../../document/go-json.js';
import type { BundleBlob } from '../../model/declarative-config.js';
import { detach } from '../../model/describe.js';
import type { BlobOrigin } from '../../model/facts.js';
import { getImages } from '../diff/snapshot.js';
import type { FindingList } from './finding-list.js';

/** Compares the images of all bundles during one pass. */
export class ImageExamination {
  readonly #findings: FindingList;
  /** First bundle of each bundle image. */
  readonly #owners = new Map<string, { package: string; bundle: string }>();
  /** First digest of each `repository:tag` with a digest, and whether a conflict was reported. */
  readonly #digests = new Map<string, { digest: string; isTold: boolean }>();

  constructor(findings: FindingList) {
    this.#findings = findings;
  }

  add(blob: BundleBlob, origin: BlobOrigin): void {
    const subject = { package: detach(blob.package), bundle: detach(blob.name), origin };
    const owner = this.#owners.get(blob.image);
    if (owner !== undefined) {
      const other = `${quoteGo(owner.bundle)}${owner.package === subject.package ? '' : ` of package ${quoteGo(owner.package)}`}`;
      // A duplicate bundle is a separate error.
      if (owner.bundle !== subject.bundle || owner.package !== subject.package) {
        const message = `has the same image as ${other}: ${quoteGo(blob.image)}`;
        const hint = 'set the image that was built for this bundle';
        this.#findings.add('bundle-image-shared', { ...subject, path: ['image'] }, message, hint);
      }
    } else if (blob.image !== '') this.#owners.set(detach(blob.image), subject);
    for (const image of getImages(blob)) {
      const position = image.indexOf('@');
      if (position < 0 || image.lastIndexOf(':', position) <= image.lastIndexOf('/', position)) continue;
      this.#addDigest(image.slice(0, position), image.slice(position + 1), subject);
    }
  }

  #addDigest(
    tagged: string,
    digest: string,
    subject: { package: string; bundle: string; origin: BlobOrigin },
  ): void {
    const known = this.#digests.get(tagged);
    if (known === undefined) {
      this.#digests.set(detach(tagged), { digest: detach(digest), isTold: false });
      return;
    }
    if (known.digest === digest || known.isTold) return;
    known.isTold = true;
    const message = `${quoteGo(tagged)} refers to ${digest} here and to ${known.digest} elsewhere`;
    const hint = 'use a separate tag for each image: a mirror can hold only one of them under that tag';
    this.#findings.add('image-two-digests', { ...subject, path: ['relatedImages'] }, message, hint);
  }
}
