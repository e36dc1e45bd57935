// Saves what an address of the API returns as a file. The browser's cookie signs the request in.
export function download(url: string, name: string): void {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
}
