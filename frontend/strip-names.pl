#!/usr/bin/env perl
# strip-names FILE.wasm…: takes the names of functions and the tools' own notes out of each file, in place. They were for
# the splitting; without them a part of the page is a third smaller to load. A section is its id, its length and its
# content; those are custom ones (id 0), whose content begins with a name.
use strict;
use warnings;

for my $file (@ARGV) {
    open my $in, '<:raw', $file or die "$file: $!\n";
    my $all = do { local $/; <$in> };
    close $in;
    die "$file is no wasm file\n" unless substr($all, 0, 4) eq "\0asm";

    my $at = 8;
    my $number = sub {
        my ($value, $shift) = (0, 0);
        while (1) {
            die "$file ends too early\n" if $at >= length $all;
            my $byte = ord substr $all, $at++, 1;
            $value |= ($byte & 127) << $shift;
            return $value if $byte < 128;
            $shift += 7;
        }
    };
    my $kept = substr $all, 0, 8;
    while ($at < length $all) {
        my ($start, $id) = ($at, ord substr $all, $at, 1);
        $at++;
        my $length = $number->();
        my $end = $at + $length;
        die "$file ends too early\n" if $end > length $all;
        my $name = '';
        if ($id == 0) {
            my $long = $number->();
            $name = substr $all, $at, $long;
        }
        $kept .= substr $all, $start, $end - $start unless $name =~ /^(?:name|producers|__wasm.*)$/;
        $at = $end;
    }
    open my $out, '>:raw', $file or die "$file: $!\n";
    print {$out} $kept;
    close $out or die "$file: $!\n";
}
