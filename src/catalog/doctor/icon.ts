import { quoteGo } from '../../document/go-json.js';
import type { PackageBlob } from '../../model/declarative-config.js';
import { detectImageType } from '../../model/image-type.js';
import type { CatalogSubject } from '../../model/catalog-diagnostic.js';
import type { FindingList } from './finding-list.js';

/** Size from which an icon is large: every list of packages contains it. */
const largeIcon = 1024 * 1024;

/** Other names of detected media types. */
const otherNames: Readonly<Record<string, string>> = {
  'image/jpg': 'image/jpeg',
  'image/pjpeg': 'image/jpeg',
  'image/svg': 'image/svg+xml',
  'image/x-icon': 'image/vnd.microsoft.icon',
};

/** Examines the icon of a package. */
export function examineIcon({ icon }: PackageBlob, subject: CatalogSubject, findings: FindingList): void {
  const add = (message: string, hint: string, where: string[], severity?: 'notice'): void =>
    findings.add('icon', { ...subject, path: ['icon', ...where] }, message, hint, severity);
  if (icon === undefined || (icon.base64data ?? '') === '') {
    const hint = 'add an icon with api.createPackage options.icon FILE; consoles show it';
    findings.add('icon', subject, 'package has no icon', hint, 'notice');
    return;
  }
  const content = Buffer.from(icon.base64data ?? '', 'base64');
  if (content.length > largeIcon) {
    const size = `${(content.length / 1024 / 1024).toFixed(1)} MiB`;
    add(`the icon has ${size}`, 'reduce it to less than 1 MiB', ['base64data']);
  }
  const detected = detectImageType(content);
  const declared = icon.mediatype.trim().toLowerCase();
  if (detected === 'unknown') {
    // Text may be an SVG image that only a parser recognizes.
    if (!/<svg[\s>]/i.test(content.toString('latin1', 0, 64 * 1024)))
      add('the icon is not an image', 'use an SVG or PNG image, encoded as base64', ['base64data']);
  } else if (declared === '') {
    add('the icon has no media type', `set mediatype to ${quoteGo(detected)}`, []);
  } else if ((otherNames[declared] ?? declared) !== detected) {
    const message = `the icon is ${detected}, but its media type is ${quoteGo(icon.mediatype)}`;
    add(message, `set mediatype to ${quoteGo(detected)}`, ['mediatype']);
  } else if (declared !== detected) {
    const message = `the media type of the icon, ${quoteGo(icon.mediatype)}, is not registered`;
    add(message, `set mediatype to ${quoteGo(detected)}`, ['mediatype'], 'notice');
  }
  if ((detected === 'image/svg+xml' || detected === 'unknown') && hasScript(content.toString('utf8'))) {
    add('the icon contains a script', 'remove it: pages that embed the icon would run it', ['base64data']);
  }
}

function hasScript(svg: string): boolean {
  return /<script[\s>/]|[\s"'/]on[a-z]+\s*=\s*["']|=\s*["']?\s*javascript:/i.test(svg);
}
