"""Makes error-rates.jsonl: pairs of texts with the error rates that jiwer gives and the forms that whisper-normalizer gives.

    pip install jiwer==4.0.0 whisper-normalizer==0.1.15 more-itertools regex && python error_rates.py > error-rates.jsonl
"""

import json
import random

import jiwer
from whisper_normalizer.basic import BasicTextNormalizer
from whisper_normalizer.english import EnglishTextNormalizer

WORDS = """the a of and river table window small house winter green market people carry old paper open morning music they
write about stone bridge quiet water letter between garden city remember summer story under night travel measure colour
favourite centre analyse travelled organisation grey theatre catalogue defence licence won't can't I'm you're it's he'd
they've don't let's y'all gonna wanna 'cause Mr. Mrs. Dr. St. Jr. Prof. hmm uh um mhm café naïve Zürich Łódź smørrebrød
straße œuvre cœur [laughter] (inaudible) <noise> hello, world! yes; no? «quote» – "so" ok. e.g. U.S. don’t""".split()
NUMBERS = """one two three five eleven twelve nineteen twenty thirty fifty ninety hundred thousand million billion first second
third fifth twelfth twentieth hundredth millionth ones tens twenties thousands oh zero double triple point and minus negative
plus dollars dollar pounds euros cents cent percent per half 7 12 3.5 0.25 1,000 1960s 32nd 4th $20 £5.50 €3 50% $2 ¢7 20 million
007 2.50 $0.75""".split()
SPELLED = [
    "twenty five", "two hundred and five", "one oh one", "three point one four", "minus forty", "ten thousand dollars",
    "two and a half", "fifty per cent", "double five one", "nineteen sixty eight", "two dollars and seven cents",
    "twenty twenty four", "five hundred thousand", "one million two hundred thousand", "the second of may", "point five percent",
    "house and a half", "three twenty firsts", "$20 million", "1.5 billion euros", "zero hundred", "forty seventh",
]


def sentence(random):
    out = []
    for _ in range(random.randint(1, 18)):
        roll = random.random()
        out.append(random.choice(WORDS if roll < 0.6 else NUMBERS if roll < 0.9 else SPELLED))
    text = " ".join(out)
    return text.capitalize() if random.random() < 0.3 else text.upper() if random.random() < 0.1 else text


def heard(random, text):
    words = text.split()
    out = []
    for word in words:
        roll = random.random()
        if roll < 0.06:
            continue
        if roll < 0.12:
            word = random.choice(WORDS)
        elif roll < 0.17 and len(word) > 2:
            at = random.randrange(len(word) - 1)
            word = word[:at] + random.choice("aeiostx") + word[at + 1 :]
        elif roll < 0.22:
            word = word.upper()
        out.append(word)
        if random.random() < 0.05:
            out.append(random.choice(WORDS + NUMBERS))
    return " ".join(out)


def rates(reference, hypothesis):
    if not reference.strip():
        return {"wer": None, "cer": None}
    return {"wer": 100 * jiwer.wer(reference, hypothesis), "cer": 100 * jiwer.cer(reference, hypothesis)}


def main():
    rng = random.Random(20261130)
    basic, english = BasicTextNormalizer(), EnglishTextNormalizer()
    for _ in range(400):
        reference = sentence(rng)
        hypothesis = heard(rng, reference) if rng.random() < 0.9 else sentence(rng)
        row = {"reference": reference, "hypothesis": hypothesis, "none": rates(reference.lower(), hypothesis.lower())}
        for name, even in (("basic", basic), ("whisper-english", english)):
            forms = even(reference).strip(), even(hypothesis).strip()
            row[name] = {"reference": forms[0], "hypothesis": forms[1], **rates(*forms)}
        print(json.dumps(row, ensure_ascii=False))


main()
