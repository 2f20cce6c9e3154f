import type { FuzzCase } from '../fuzz-case.ts'
import type { Random } from '../../../test/support/random.ts'
import { demultiplexerCase } from './demultiplexer-case.ts'
import { executorCase } from './executor-case.ts'
import { floodCase } from './flood-case.ts'
import { lineCase } from './line-case.ts'
import { readyCase } from './ready-case.ts'
import { sealCase } from './seal-case.ts'
import { splitterCase } from './splitter-case.ts'

/** Makes a case for the host; its property is drawn first. */
export function hostCase(random: Random): FuzzCase {
  const drawn = random.below(2000)
  if (drawn < 1100) return lineCase(random)
  if (drawn < 1400) return splitterCase(random)
  if (drawn < 1600) return demultiplexerCase(random)
  if (drawn < 1700) return sealCase(random)
  if (drawn < 1750) return readyCase(random)
  if (drawn < 1999) return executorCase(random)
  return floodCase(random)
}
