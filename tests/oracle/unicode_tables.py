"""Tables from the Unicode Consortium's data. This file is generated.

    python -m tools.unicode_tables --oracle FOLDER > tests/oracle/unicode_tables.py

From DerivedCoreProperties 15.0.0, DerivedJoiningType 15.0.0, confusables of UTS 39
13.0.0.

Copyright (c) 2020, 2022 Unicode, Inc. The licence is in LICENSE-UNICODE. The data was
modified: it was selected and rewritten as `tools/unicode_tables.py` says.

A table is a list of code points and ranges of them, in hexadecimal digits.
"""

from __future__ import annotations

from typing import Final

IGNORABLE: Final = """
AD 34F 61C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F FEFF
FFA0 FFF0-FFF8 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF
"""
"""The property Default_Ignorable_Code_Point: what is invisible if it isn't supported."""

JOINED_TO_THE_NEXT: Final = """
620 626 628 62A-62E 633-63F 641-647 649-64A 66E-66F 678-687 69A-6BF 6C1-6C2 6CC 6CE 6D0-6D1
6FA-6FC 6FF 712-714 71A-71D 71F-727 729 72B 72D-72E 74E-758 75C-76A 76D-770 772 775-777
77A-77F 7CA-7EA 841-845 848 84A-853 855 860 862-865 868 886 889-88D 8A0-8A9 8AF-8B0 8B3-8B8
8BA-8C8 1807 1820-1878 1887-18A8 18AA A840-A872 10AC0-10AC4 10ACD 10AD3-10ADC 10ADE-10AE0
10AEB-10AEE 10B80 10B82 10B86-10B88 10B8A-10B8B 10B8D 10B90 10BAD-10BAE 10D00-10D21 10D23
10F30-10F32 10F34-10F44 10F51-10F53 10F70-10F73 10F76-10F81 10FB0 10FB2-10FB3 10FB8
10FBB-10FBC 10FBE-10FBF 10FC1 10FC4 10FCA-10FCB 1E900-1E943
"""
"""Joining_Type L or D: letters of cursive scripts that join the letter after them."""

JOINED_TO_THE_LAST: Final = """
620 622-63F 641-64A 66E-66F 671-673 675-6D3 6D5 6EE-6EF 6FA-6FC 6FF 710 712-72F 74D-77F
7CA-7EA 840-858 860 862-865 867-86A 870-882 886 889-88E 8A0-8AC 8AE-8C8 1807 1820-1878
1887-18A8 18AA A840-A871 10AC0-10AC5 10AC7 10AC9-10ACA 10ACE-10AD6 10AD8-10AE1 10AE4
10AEB-10AEF 10B80-10B91 10BA9-10BAE 10D01-10D23 10F30-10F44 10F51-10F54 10F70-10F81 10FB0
10FB2-10FB6 10FB8-10FBF 10FC1-10FC4 10FC9-10FCA 1E900-1E943
"""
"""Joining_Type R or D: letters of cursive scripts that join the letter before them."""

ELONGATIONS: Final = """
640 7FA 180A
"""
"""Joining_Type C, and category Lm or Po: strokes that make a cursive word longer."""

CONFUSABLE: Final[dict[str, str]] = {
    '"': "2F6 5F4 1CD3 201C-201D 201F 3003",
    "$": "1F10F",
    "'": "2F4 55A 55D 5F3 2018-2019 201B 2032 2035",
    "(": "2768 2772 3014 FD3E",
    "((": "2E28",
    ")": "2769 2773 3015 FD3F",
    "))": "2E29",
    "*": "66D 204E 2217",
    "+": "16ED 2795",
    ",": "60D 66B 201A",
    "-": "2D7 6D4 2010 2012-2014 2043 2212 2796",
    "-.": "A4FE",
    ".": "701-702 A60E 10A50",
    "/": "1735 2041 2044 2215 2571 27CB 29F8 31D3 1D23A",
    "//": "2AFD",
    "///": "2AFB",
    "3": "1D206",
    "7": "1D212",
    ":": "2F8 589 5C3 703-704 16EC 1803 1809 205A 2236 A789",
    "<": "2C2 2039 276E 1D236",
    "<<": "226A",
    "<<<": "22D8",
    "=": "1400 2E40 30A0 A4FF",
    ">": "2C3 203A 276F 1D237",
    "><": "2AA5",
    ">>": "226B 2A20",
    ">>>": "22D9",
    "\\": "2216 27CD 29F5 29F9 31D4 1D20F 1D23B",
    "\\\\": "244A 2CF9",
    "^": "2C4",
    "a": "251 3B1 430 13AA 15C5 237A A4EE",
    "aa": "A733",
    "ae": "E6 4D5",
    "ao": "A735",
    "ar": "1F707",
    "au": "A737",
    "av": "A739 A73B",
    "ay": "A73D",
    "b": "180 185 3B2 432 44C 463 48D 13CF 13F4 1472 15AF 15F7 A4D0 A7B5",
    "bl": "44B",
    "c": "A2 23C 3A3 3C2 441 13DF 1D04 20A1 2CA5 A4DA 1043D 1F16E 1F74C",
    "d": "F0 111 256 501 13A0 13E7 146F 15DE 15EA A4D2-A4D3",
    "dz": "2A3",
    "e": "247 3B5 435 4BD 13AC 212E 22FF A4F0 AB32 118C6 118CE",
    "f": "3DD 584 15B4 1D6E 1E9D A4DD A799 AB35 118C2 1D213",
    "g": "18D 1E5 261 50D 581 13C0 13F3 1D83 A4D6",
    "h": "127 3B7 43D 45B 4BB 570 13BB 13C2 157C 2C8F A4E7",
    "i": "131 268-26A 3B9 456 4CF 13A5 1D7B-1D7C 2373 2C93 A647 118C3",
    "j": "249 29D 3F3 458 13AB 148D A4D9",
    "k": "3BA 43A 49F 13E6 20AD 2C95 A4D7 A741",
    "l": "142 19A 26B 5C0 13DE 14AA 2223 23FD 2502 2CD1 A4E1 A4F2 10443 118A3 118D2 1D22A",
    "ll": "2016 2225 10199",
    "lls": "10198",
    "lo": "44E",
    "ls": "2AA",
    "lt": "20B6",
    "lz": "2AB",
    "m": "3BC 3FB 43C 13B7 15F0 1D6F 20A5 2C99 A4DF",
    "mb": "1F76B",
    "n": "39D 578 57C 1D70 2C9B A4E0",
    "o": (
        "F8 275 3B8 3BF 3C3 43E 473 4E9 585 10FF 13BE 13EB 1D0F 1D11 2296 229D 236C 2C9F A4F3 "
        "A74B AB3D-AB3E 1042C 104EA 118C8 118D5 118D7 1D21A 1F714"
    ),
    "oe": "153",
    "oo": "221E A699 A74F",
    "p": "3C1 440 13E2 146D 1D7D 2374 2CA3 A4D1",
    "q": "51B 563 566",
    "qe": "1F700",
    "r": "24D 280 433 493 13A1 13B1 13D2 1587 1D26 1D72 2C85 A4E3 AB47-AB48 104DC 1D216",
    "s": "1BD 455 57F 13D5 13DA 1D74 A4E2 A731 10448 118C1",
    "sss": "1F75C",
    "t": "167 3C4 442 13A2 1D75 20AE 22A4 27D9 2C66 2CA7 A4D4 118BC 1F768",
    "tf": "A777",
    "ts": "2A6",
    "u": "289 28B 3C5 57D 13CC 144C 1D1C 1D7E 222A 22C3 A4F4 A79F AB4E AB52 104F6 118D8",
    "ue": "1D6B",
    "uo": "AB63",
    "v": "3BD 475 13D9 142F 1D20 2228 22C1 A4E6 10197 118C0 1D20D",
    "vb": "1F76C",
    "w": "26F 461 51D 561 13B3 13D4 1D21 20A9 A4EA",
    "x": "D7 3C7 445 1541 157D 166D-166E 2573 292B-292C 2A2F 2CAD A4EB AB53 10196",
    "y": "A5 24F 263 28F 3A5 3B3 443 4AF 4B1 10E7 13A9 13BD 1D8C 1EFF 2CA9 A4EC AB5A 118A4 118DC",
    "z": "1B6 3B6 13C3 1D22 1D76 A4DC 118C4 118C9",
    "{": "2774 1D114",
    "}": "2775",
    "~": "2053 223C",
}
"""Characters that look like ASCII, by what they look like.

A small letter stands for its capital too, unless that is listed itself.
"""
