/** Something did not settle in its time; counted apart from what settled wrongly. */
export class Hang extends Error {
  override readonly name = 'Hang'
}
