import { compareTemplates } from './templates.js';

export function compareTemplateSemver(corpus, report) {
  return compareTemplates(corpus, report, 'template-semver', 'semver');
}
