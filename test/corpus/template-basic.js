import { compareTemplates } from './templates.js';

export function compareTemplateBasic(corpus, report) {
  return compareTemplates(corpus, report, 'template-basic', 'basic');
}
