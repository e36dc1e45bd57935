// Compare two attempts.
export default function ComparePage() {
  return null;
}
