// Unpacks the Chromium of an npm package, and the libraries that it needs, into $TMPDIR.
import chromium from "@sparticuz/chromium";

process.stdout.write(await chromium.executablePath());
