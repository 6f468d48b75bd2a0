/* Counts the words of a file, as `wc -w`, by reads of BUFFER bytes: one tool, built twice for docs/gallery.md. */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **arguments) {
    static unsigned char buffer[BUFFER];
    int file = count == 2 ? open(arguments[1], O_RDONLY) : -1;
    if (file < 0) {
        fprintf(stderr, "usage: %s FILE\n", arguments[0]);
        return 2;
    }
    unsigned long words = 0;
    int is_inside = 0;
    ssize_t length;
    while ((length = read(file, buffer, sizeof buffer)) > 0)
        for (ssize_t at = 0; at < length; at++) {
            int is_word = !isspace(buffer[at]);
            words += is_word && !is_inside;
            is_inside = is_word;
        }
    if (length < 0) {
        perror(arguments[1]);
        return 1;
    }
    printf("%lu\n", words);
    return 0;
}
