import type { Display } from '../executor/index.ts'

const MAX_DISPLAYS = 100
const MAX_CHARS = 16 * 1024 * 1024

/** The values that the scripts of a task showed, within the limits of one run. The oldest are dropped first. */
export class TaskDisplays {
  all: readonly Display[] = []

  /** Replaces all displays with those of one script. */
  replace(displays: readonly Display[]): void {
    this.all = displays
  }

  /** Appends the displays of a script. */
  add(displays: readonly Display[]): void {
    const kept: Display[] = []
    let chars = 0
    for (const display of [...this.all, ...displays].toReversed()) {
      chars += Object.values(display.data).reduce((sum, content) => sum + content.length, 0)
      if (kept.length === MAX_DISPLAYS || chars > MAX_CHARS) break
      kept.push(display)
    }
    this.all = kept.toReversed()
  }
}
