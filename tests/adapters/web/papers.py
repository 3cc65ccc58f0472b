"""PDFs for tests, written manually."""

from __future__ import annotations


def pdf(*pages: str, title: str = "") -> bytes:
    """Return a PDF with a line of text on each page."""
    count = len(pages)
    kids = " ".join(f"{3 + 2 * number} 0 R" for number in range(count))
    font = 3 + 2 * count
    page = (
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {body} 0 R "
        "/Resources << /Font << /F1 {font} 0 R >> >> >>"
    )
    parts = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {count} >>"]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        parts += [
            page.format(body=4 + 2 * number, font=font),
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    parts += ["<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>", f"<< /Title ({title}) >>"]
    return assembled(parts)


def assembled(parts: list[str]) -> bytes:
    """Join objects to a file with a table. The first is the root, the last the document information."""
    out, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, start=1):
        places.append(len(out))
        out += f"{number} 0 obj\n{part}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(parts) + 1
    tail = (
        f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R /Info {len(parts)} 0 R >>\n"
    )
    return out + f"{tail}startxref\n{len(out)}\n%%EOF\n".encode()
