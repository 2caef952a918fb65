// Answers what status ClusterExtensions have on a cluster without a usable catalog.
import { answerWith } from './cluster.js';

export const answer = (question) => answerWith(question, true);
