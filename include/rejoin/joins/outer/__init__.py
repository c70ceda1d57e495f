"""What right and full foreign-key joins add to the star: results of right rows without a left one."""
