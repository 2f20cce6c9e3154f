/** Thrown when something does not settle in time. Hangs are counted separately from wrong results. */
export class Hang extends Error {
  override readonly name = 'Hang'
}
