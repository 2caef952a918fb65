#!/usr/bin/env node
// For those who start this file; the command is opmate.cjs.
import './opmate.cjs';
