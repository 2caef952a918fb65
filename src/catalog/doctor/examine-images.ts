import { quoteGo } from '../../document/go-json.js';
import type { BundleBlob } from '../../model/declarative-config.js';
import { detach } from '../../model/describe.js';
import type { CatalogSubject } from '../../model/catalog-diagnostic.js';
import type { BlobOrigin } from '../../model/facts.js';
import { getBundleImages } from '../diff/snapshot.js';
import type { FindingList } from './finding-list.js';

/** Returns a function that compares the images of all bundles, one after the other. */
export function createImageCheck(findings: FindingList): (blob: BundleBlob, origin: BlobOrigin) => void {
  /** First bundle of each bundle image. */
  const owners = new Map<string, { package: string; bundle: string }>();
  /** First digest of each `repository:tag` with a digest, and whether a conflict was reported. */
  const digests = new Map<string, { digest: string; isTold: boolean }>();
  const addDigest = (tagged: string, digest: string, subject: CatalogSubject): void => {
    const known = digests.get(tagged);
    if (known === undefined) {
      digests.set(detach(tagged), { digest: detach(digest), isTold: false });
      return;
    }
    if (known.digest === digest || known.isTold) return;
    known.isTold = true;
    const message = `${quoteGo(tagged)} refers to ${digest} here and to ${known.digest} elsewhere`;
    const hint = 'use a separate tag for each image: a mirror can hold only one of them under that tag';
    findings.add('image-two-digests', { ...subject, path: ['relatedImages'] }, message, hint);
  };

  return (blob, origin) => {
    const subject = { package: detach(blob.package), bundle: detach(blob.name), origin };
    const owner = owners.get(blob.image);
    if (owner !== undefined) {
      const other = `${quoteGo(owner.bundle)}${owner.package === subject.package ? '' : ` of package ${quoteGo(owner.package)}`}`;
      // A duplicate bundle is a separate error.
      if (owner.bundle !== subject.bundle || owner.package !== subject.package) {
        const message = `has the same image as ${other}: ${quoteGo(blob.image)}`;
        const hint = 'set the image that was built for this bundle';
        findings.add('bundle-image-shared', { ...subject, path: ['image'] }, message, hint);
      }
    } else if (blob.image !== '') owners.set(detach(blob.image), subject);
    for (const image of getBundleImages(blob)) {
      const position = image.indexOf('@');
      if (position < 0 || image.lastIndexOf(':', position) <= image.lastIndexOf('/', position)) continue;
      addDigest(image.slice(0, position), image.slice(position + 1), subject);
    }
  };
}
